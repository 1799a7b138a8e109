// Stands in for Kafka's class of this name (it must come before kafka-test-common-runtime on the class path): a
// @ClusterTest then runs against a broker outside of the test's process, not against an embedded one.
//
//   -Dext.launch="cmd"       cmd PORT DIR starts a broker (settings of the test in DIR/extra.properties) and prints its
//                            process id; one broker for each distinct set of settings, kept for the next test
//   -Dext.fresh=true         a new broker for every test
//   -Dext.bootstrap=H:P      one broker for all tests instead
//   -Dext.port, -Dext.dir    first of the ten ports, and the folder, that launched brokers use
//
// A test that asks for the insides of a broker is aborted with the reason, which the report counts as skipped.
package org.apache.kafka.common.test.junit;

import java.lang.reflect.Proxy;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import kafka.server.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.*;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.junit.jupiter.api.extension.*;
import org.opentest4j.TestAbortedException;

public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
  private final String name;
  private final ClusterConfig config;
  private final boolean combined;

  public RaftClusterInvocationContext(String name, ClusterConfig config, boolean combined) {
    this.name = name;
    this.config = config;
    this.combined = combined;
  }

  static void waitForCondition(Supplier<Boolean> c, String m) throws InterruptedException {
    for (int i = 0; i < 600; i++) {
      if (c.get()) return;
      Thread.sleep(25);
    }
    throw new RuntimeException(m);
  }

  @Override
  public String getDisplayName(int i) {
    return name + " [" + i + "] Type=External, " + String.join(",", config.displayTags());
  }

  @Override
  public List<Extension> getAdditionalExtensions() {
    Ext ext = new Ext(config);
    return List.of(
        (BeforeEachCallback)
            c -> {
              if (config.isAutoStart()) ext.start();
            },
        (AfterEachCallback) c -> ext.stop(),
        new ClusterInstanceParameterResolver(ext));
  }

  static final Map<Map<String, String>, String[]> POOL =
      new LinkedHashMap<>(8, .75f, true) { // bootstrap, pid; at most ext.pool brokers alive
        protected boolean removeEldestEntry(Map.Entry<Map<String, String>, String[]> e) {
          if (size() <= Integer.getInteger("ext.pool", 3)) return false;
          kill(e.getValue()[1]);
          return true;
        }
      };

  static void kill(String p) {
    try {
      new ProcessBuilder("kill", "-9", p).start().waitFor();
    } catch (Exception e) {
    }
  }

  static final int FIRST_PORT = Integer.getInteger("ext.port", 23000);
  static int nextPort = FIRST_PORT;

  static {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> POOL.values().forEach(v -> kill(v[1]))));
  }

  static boolean inUse(int port) {
    return POOL.values().stream().anyMatch(v -> v[0].equals("localhost:" + port));
  }

  static synchronized String bootstrapFor(ClusterConfig c) {
    String launch = System.getProperty("ext.launch"), shared = System.getProperty("ext.bootstrap");
    if (launch == null) return shared;
    Map<String, String> p = new TreeMap<>(c.serverProperties());
    c.perServerOverrideProperties().values().forEach(p::putAll);
    // Tests made for three brokers say so in their settings; one broker can hold one replica.
    p.replaceAll((k, v) -> k.endsWith("replication.factor") || k.endsWith("min.isr") ? "1" : v);
    if (Boolean.getBoolean("ext.fresh")) {
      POOL.values().forEach(v -> kill(v[1]));
      POOL.clear();
    }
    String[] have = POOL.get(p);
    if (have != null) return have[0];
    Map<String, String> k = p;
    {
      try {
        int port = nextPort;
        nextPort += 2;
        if (nextPort >= FIRST_PORT + 10) nextPort = FIRST_PORT;
        while (inUse(port)) {
          port = nextPort;
          nextPort = nextPort + 2 >= FIRST_PORT + 10 ? FIRST_PORT : nextPort + 2;
        }
        java.io.File dir =
            new java.io.File(
                System.getProperty(
                    "ext.dir", System.getProperty("java.io.tmpdir") + "/kafka-itests"),
                "b" + port);
        dir.mkdirs();
        try (java.io.PrintWriter w =
            new java.io.PrintWriter(new java.io.File(dir, "extra.properties"))) {
          k.forEach((a, b) -> w.println(a + "=" + b));
        }
        List<String> cmd = new ArrayList<>(List.of(launch.split(" ")));
        cmd.add("" + port);
        cmd.add(dir.getPath());
        Process pr = new ProcessBuilder(cmd).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        String pid = new String(pr.getInputStream().readAllBytes()).trim();
        pr.waitFor();
        POOL.put(p, new String[] {"localhost:" + port, pid});
        return "localhost:" + port;
      } catch (Exception e) {
        throw new RuntimeException(e);
      }
    }
  }

  static class Ext implements ClusterInstance {
    final ClusterConfig config;
    String bs;
    boolean started, stopped;
    Admin shared;
    List<Integer> ids = List.of(0);
    Map<Integer, Integer> ports = Map.of();
    Map<Integer, KafkaBroker> brokers;
    String clusterId;

    Ext(ClusterConfig c) {
      config = c;
    }

    static RuntimeException no(String what) {
      return new TestAbortedException("needs broker internals: " + what);
    }

    @Override
    public void start() {
      if (started) return;
      if (config.brokerSecurityProtocol() != SecurityProtocol.PLAINTEXT)
        throw new TestAbortedException(
            "external broker is PLAINTEXT only: " + config.brokerSecurityProtocol());
      if (config.serverProperties().keySet().stream()
          .anyMatch(
              k ->
                  k.contains("authorizer")
                      || k.contains("principal.builder")
                      || k.contains(".policy.class.name")
                      || k.contains("callback.class")
                      || k.contains("metric.reporters")))
        throw new TestAbortedException("server plug-in class: " + config.serverProperties());
      if (config.numBrokers() > 1 && Boolean.getBoolean("ext.strict"))
        throw new TestAbortedException("multi-broker");
      System.err.println(
          "EXT config brokers="
              + config.numBrokers()
              + " "
              + new TreeMap<>(config.serverProperties()));
      bs = bootstrapFor(config);
      shared = Admin.create(Map.of("bootstrap.servers", bs));
      try {
        DescribeClusterResult d = shared.describeCluster();
        clusterId = d.clusterId().get(20, TimeUnit.SECONDS);
        ids = d.nodes().get().stream().map(Node::id).sorted().collect(Collectors.toList());
        ports = d.nodes().get().stream().collect(Collectors.toMap(Node::id, Node::port));
        clean();
      } catch (Exception e) {
        throw new RuntimeException("external broker " + bs + ": " + e, e);
      }
      brokers =
          new LinkedHashMap<>() {
            @Override
            public KafkaBroker get(Object k) {
              return containsKey(k) || size() != 1 ? super.get(k) : values().iterator().next();
            }
          }; // tests say get(0)
      for (int id : ids) brokers.put(id, broker(id));
      started = true;
    }

    void clean() throws Exception {
      for (int i = 0; i < 20; i++) {
        Set<String> t = new HashSet<>(shared.listTopics().names().get(20, TimeUnit.SECONDS));
        if (t.isEmpty()) break;
        shared.deleteTopics(t).all().get(20, TimeUnit.SECONDS);
        Thread.sleep(50);
      }
      for (GroupListing g : shared.listGroups().all().get(20, TimeUnit.SECONDS)) {
        try {
          GroupType ty = g.type().orElse(GroupType.CLASSIC);
          if (ty == GroupType.SHARE)
            shared.deleteShareGroups(List.of(g.groupId())).all().get(10, TimeUnit.SECONDS);
          else shared.deleteConsumerGroups(List.of(g.groupId())).all().get(10, TimeUnit.SECONDS);
        } catch (Exception e) {
        }
      }
      Map<org.apache.kafka.common.config.ConfigResource, Collection<AlterConfigOp>> del =
          new HashMap<>();
      for (var r :
          List.of(
              org.apache.kafka.common.config.ConfigResource.Type.GROUP,
              org.apache.kafka.common.config.ConfigResource.Type.CLIENT_METRICS))
        try {
          for (var cr :
              shared.listConfigResources(Set.of(r), new ListConfigResourcesOptions()).all().get()) {
            var es =
                shared.describeConfigs(List.of(cr)).all().get().get(cr).entries().stream()
                    .filter(
                        e ->
                            e.source() != ConfigEntry.ConfigSource.DEFAULT_CONFIG
                                && (e.source().name().startsWith("DYNAMIC_GROUP")
                                    || e.source().name().startsWith("DYNAMIC_CLIENT_METRICS")))
                    .map(
                        e ->
                            new AlterConfigOp(
                                new ConfigEntry(e.name(), null), AlterConfigOp.OpType.DELETE))
                    .toList();
            if (!es.isEmpty()) del.put(cr, new ArrayList<>(es));
          }
        } catch (Exception e) {
        }
      if (!del.isEmpty())
        try {
          shared.incrementalAlterConfigs(del).all().get(10, TimeUnit.SECONDS);
        } catch (Exception e) {
        }
    }

    @Override
    public void stop() {
      if (shared != null && !stopped) {
        try {
          clean();
        } catch (Exception e) {
        }
        shared.close(java.time.Duration.ofSeconds(2));
      }
      stopped = true;
    }

    @Override
    public boolean started() {
      return started;
    }

    @Override
    public boolean stopped() {
      return stopped;
    }

    @Override
    public Type type() {
      return Type.KRAFT;
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
      return brokers == null ? Map.of() : brokers;
    }

    @Override
    public Map<Integer, KafkaBroker> aliveBrokers() {
      return brokers();
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
      return new HashMap<>() {
        @Override
        public ControllerServer get(Object k) {
          throw no("controllers");
        }
      };
    }

    @Override
    public ClusterConfig config() {
      return config;
    }

    @Override
    public Set<Integer> controllerIds() {
      return Set.copyOf(ids);
    }

    @Override
    public Set<Integer> brokerIds() {
      return new TreeSet<>(ids);
    }

    @Override
    public ListenerName clientListener() {
      return ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT);
    }

    @Override
    public ListenerName controllerListenerName() {
      return new ListenerName("CONTROLLER");
    }

    @Override
    public String bootstrapServers() {
      return bs;
    }

    @Override
    public String bootstrapControllers() {
      throw no("bootstrap.controllers");
    }

    @Override
    public List<Integer> controllerBoundPorts() {
      throw no("controllerBoundPorts");
    }

    @Override
    public List<Integer> brokerBoundPorts() {
      return new ArrayList<>(ports.values());
    }

    @Override
    public String clusterId() {
      return clusterId;
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
      return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
      return Optional.empty();
    }

    @Override
    public void shutdownBroker(int i) {
      throw no("shutdownBroker");
    }

    @Override
    public void startBroker(int i) {
      throw no("startBroker");
    }

    @Override
    public void waitForReadyBrokers() {}

    short rf(short r) {
      return r > ids.size() ? (short) ids.size() : r;
    }

    @Override
    public void createTopic(String t, int p, short r, Map<String, String> c)
        throws InterruptedException {
      try (Admin a = admin()) {
        a.createTopics(List.of(new NewTopic(t, p, rf(r)).configs(c)));
        waitTopicCreation(t, p);
      }
    }

    @Override
    public void createTopicWithAssignment(String t, Map<Integer, List<Integer>> as)
        throws InterruptedException {
      if (!ids.containsAll(as.values().stream().flatMap(List::stream).toList()))
        throw new TestAbortedException("multi-broker assignment");
      try (Admin a = admin()) {
        a.createTopics(List.of(new NewTopic(t, as)));
        waitTopicCreation(t, as.size());
      }
    }

    @Override
    public void waitTopicCreation(String t, int p) throws InterruptedException {
      waitForCondition(
          () -> {
            try {
              var d =
                  shared
                      .describeTopics(List.of(t))
                      .allTopicNames()
                      .get(10, TimeUnit.SECONDS)
                      .get(t);
              return d.partitions().size() == p
                  && d.partitions().stream()
                      .allMatch(x -> x.leader() != null && x.leader().id() >= 0);
            } catch (Exception e) {
              return false;
            }
          },
          t + " not created");
    }

    @Override
    public void waitTopicDeletion(String t) throws InterruptedException {
      waitForCondition(
          () -> {
            try {
              return !shared.listTopics().names().get(10, TimeUnit.SECONDS).contains(t);
            } catch (Exception e) {
              return false;
            }
          },
          t + " not deleted");
    }

    @Override
    public void ensureConsistentMetadata() {}

    @Override
    public void ensureConsistentMetadata(
        Collection<KafkaBroker> b, Collection<ControllerServer> c) {}

    @Override
    public List<org.apache.kafka.server.authorizer.Authorizer> authorizers() {
      throw no("authorizers");
    }

    @Override
    public void waitAcls(AclBindingFilter f, Collection<AccessControlEntry> want)
        throws InterruptedException {
      waitForCondition(
          () -> {
            try {
              return shared.describeAcls(f).values().get().stream()
                  .map(AclBinding::entry)
                  .collect(Collectors.toSet())
                  .equals(Set.copyOf(want));
            } catch (Exception e) {
              return false;
            }
          },
          "acls");
    }

    KafkaBroker broker(int id) {
      Object mc =
          Proxy.newProxyInstance(
              getClass().getClassLoader(),
              new Class<?>[] {org.apache.kafka.metadata.MetadataCache.class},
              (pr, m, a) -> {
                switch (m.getName()) {
                  case "contains":
                    if (a[0] instanceof String s)
                      return shared
                          .listTopics(new ListTopicsOptions().listInternal(true))
                          .names()
                          .get()
                          .contains(s);
                    TopicPartition tp = (TopicPartition) a[0];
                    return td(tp.topic())
                        .map(d -> d.partitions().size() > tp.partition())
                        .orElse(false);
                  case "numPartitions":
                    return td((String) a[0]).map(d -> d.partitions().size());
                  case "getLeaderAndIsr":
                    return td((String) a[0])
                        .flatMap(
                            d ->
                                d.partitions().stream()
                                    .filter(x -> x.partition() == (Integer) a[1])
                                    .findFirst())
                        .filter(x -> x.leader() != null)
                        .map(
                            x ->
                                new org.apache.kafka.metadata.LeaderAndIsr(
                                    x.leader().id(), x.isr().stream().map(Node::id).toList()));
                  case "getTopicId":
                    return td((String) a[0]).map(d -> d.topicId()).orElse(Uuid.ZERO_UUID);
                  case "getAllTopics":
                    return shared
                        .listTopics(new ListTopicsOptions().listInternal(true))
                        .names()
                        .get();
                  case "getAliveBrokerNodes":
                    return new ArrayList<>(shared.describeCluster().nodes().get());
                  case "hasAliveBroker":
                    return ids.contains((Integer) a[0]);
                  default:
                    throw no("MetadataCache." + m.getName());
                }
              });
      return (KafkaBroker)
          Proxy.newProxyInstance(
              getClass().getClassLoader(),
              new Class<?>[] {KafkaBroker.class},
              (pr, m, a) -> {
                switch (m.getName()) {
                  case "metadataCache":
                    return mc;
                  case "boundPort":
                    return ports.get(id);
                  case "isShutdown":
                    return false;
                  case "groupCoordinator":
                    return Proxy.newProxyInstance(
                        getClass().getClassLoader(),
                        new Class<?>[] {org.apache.kafka.coordinator.group.GroupCoordinator.class},
                        (q, gm, ga) -> {
                          if (gm.getName().equals("groupMetadataTopicConfigs")) {
                            Properties gp = new Properties();
                            gp.put("cleanup.policy", "compact");
                            gp.put("compression.type", "producer");
                            return gp;
                          }
                          throw no("GroupCoordinator." + gm.getName());
                        });
                  case "clusterId":
                    return clusterId;
                  case "hashCode":
                    return id;
                  case "equals":
                    return pr == a[0];
                  case "toString":
                    return "ext" + id;
                  case "config":
                    Properties p = new Properties();
                    p.put("process.roles", "broker");
                    p.put("node.id", "" + id);
                    p.put("controller.quorum.voters", "9@localhost:1");
                    p.put("controller.listener.names", "CONTROLLER");
                    p.put("listeners", "PLAINTEXT://localhost:" + ports.get(id));
                    p.putAll(config.serverProperties());
                    return KafkaConfig.fromProps(p);
                  default:
                    throw no("KafkaBroker." + m.getName());
                }
              });
    }

    Optional<TopicDescription> td(String t) {
      try {
        return Optional.of(
            shared.describeTopics(List.of(t)).allTopicNames().get(10, TimeUnit.SECONDS).get(t));
      } catch (Exception e) {
        return Optional.empty();
      }
    }
  }
}
