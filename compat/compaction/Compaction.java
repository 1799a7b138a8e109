// java -cp 'KAFKA-JARS/*' Compaction.java BOOTSTRAP DIR-of-broker-data TRANSCRIPTS
// Fills topics with the Java producer, the same bytes each time, has them compacted, and writes what
// is left of each to TRANSCRIPTS/topic: every record as a consumer finds it, and where segments begin.
// Topics are filled first and compacted then, so that each is cleaned in as many rounds as is said here.
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

public class Compaction {
  static final long T0 = 1_700_000_000_000L;
  static String bootstrap;
  static Path data;
  static Path out;
  static Admin admin;

  /** A topic while it is filled; a second of the records' time is a segment. */
  static class Topic implements AutoCloseable {
    final String name;
    final KafkaProducer<String, String> producer;

    Topic(String name, String codec, boolean idempotent, String... configs) throws Exception {
      this.name = name;
      Map<String, String> all =
          new HashMap<>(
              Map.of(
                  "cleanup.policy", "delete", "retention.ms", "-1", "segment.ms", "500",
                  "min.cleanable.dirty.ratio", "0.0", "delete.retention.ms", "86400000"));
      for (int i = 0; i < configs.length; i += 2) all.put(configs[i], configs[i + 1]);
      admin.createTopics(List.of(new NewTopic(name, 1, (short) 1).configs(all))).all().get();
      producer =
          new KafkaProducer<>(
              Map.of(
                  "bootstrap.servers", bootstrap, "acks", "all", "linger.ms", "60000",
                  "batch.size", "4000000", "max.request.size", "4000000", "compression.type", codec,
                  "enable.idempotence", idempotent),
              new StringSerializer(),
              new StringSerializer());
    }

    /** One batch; a pair is "key=value", or "key" for a tombstone. */
    void batch(int second, String... pairs) throws Exception {
      for (String pair : pairs) {
        String[] parts = pair.split("=", 2);
        send(second, parts[0], parts.length > 1 ? parts[1] : null);
      }
      producer.flush();
    }

    Future<RecordMetadata> send(int second, String key, String value, Header... headers) {
      return producer.send(
          new ProducerRecord<>(name, 0, T0 + 1000L * second, key, value, List.of(headers)));
    }

    void set(String key, String value) throws Exception {
      var change = new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET);
      var topic = new ConfigResource(ConfigResource.Type.TOPIC, name);
      admin.incrementalAlterConfigs(Map.of(topic, List.of(change))).all().get();
    }

    void awaitClean(long offset) throws Exception {
      String entry = name + " 0 " + offset;
      long limit = System.currentTimeMillis() + 30_000;
      while (!lines(data.resolve("cleaner-offset-checkpoint")).contains(entry)) {
        if (System.currentTimeMillis() > limit) throw new TimeoutException("not cleaned to " + offset);
        Thread.sleep(50);
      }
    }

    public void close() {
      producer.close();
    }
  }

  static List<String> lines(Path file) {
    try {
      return Files.readAllLines(file);
    } catch (IOException e) {
      return List.of();
    }
  }

  static String text(String value) {
    if (value == null) return "null";
    return value.length() > 100 ? value.length() + " chars, hash " + value.hashCode() : value;
  }

  /** What a consumer finds, and the files that are there. */
  static void write(String topic) throws Exception {
    List<String> lines = new ArrayList<>();
    var partition = new TopicPartition(topic, 0);
    try (var consumer =
        new KafkaConsumer<>(
            Map.<String, Object>of("bootstrap.servers", bootstrap), new StringDeserializer(), new StringDeserializer())) {
      consumer.assign(List.of(partition));
      consumer.seekToBeginning(List.of(partition));
      long end = consumer.endOffsets(List.of(partition)).get(partition);
      lines.add("start " + consumer.position(partition) + " end " + end);
      while (consumer.position(partition) < end) {
        for (var r : consumer.poll(Duration.ofMillis(500))) {
          String headers =
              StreamSupport.stream(r.headers().spliterator(), false)
                  .map(h -> h.key() + "=" + (h.value() == null ? "null" : new String(h.value(), StandardCharsets.UTF_8)))
                  .collect(Collectors.joining(","));
          lines.add(
              r.offset() + " T+" + (r.timestamp() - T0) + " " + r.key() + " " + text(r.value()) + " [" + headers + "]");
        }
      }
    }
    try (var files = Files.list(data.resolve(topic + "-0"))) {
      files.map(f -> f.getFileName().toString()).filter(f -> f.endsWith(".log")).sorted().forEach(lines::add);
    }
    Files.write(out.resolve(topic), lines);
  }

  static void plain() throws Exception {
    try (var t = new Topic("plain", "none", false)) {
      t.batch(0, "a=1", "b=1", "a=2", "c=1");
      t.batch(0, "b=2");
      t.batch(1, "d=1", "a=3", "e=1");
      t.batch(2, "e=2");
      t.batch(3, "f=1", "f=2", "c=2", "g=1");
      t.batch(4, "a=4", "end=1");
      t.set("cleanup.policy", "compact");
      t.awaitClean(13);
      write(t.name);
    }
  }

  static void tombstones() throws Exception {
    try (var kept = new Topic("tombstones-kept", "none", true);
        var gone = new Topic("tombstones-gone", "none", true, "delete.retention.ms", "100")) {
      for (var t : List.of(kept, gone)) {
        t.batch(0, "a=1", "b=1", "c=1");
        t.batch(0, "a");
        t.batch(1, "b", "d=1", "d", "e=1");
        t.batch(2, "never", "e=2");
        t.batch(3, "end=1");
        t.set("cleanup.policy", "compact");
        t.awaitClean(10);
        Thread.sleep(300);
        t.batch(4, "end=2");
        t.awaitClean(11);
        write(t.name);
      }
    }
  }

  static void codecs() throws Exception {
    for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) {
      try (var t = new Topic("codec-" + codec, codec, true)) {
        for (int round = 0; round < 3; round++) {
          for (int i = 0; i < 50; i++) t.send(round, "key-" + i % (10 + 7 * round), "value " + round + " " + i);
          t.producer.flush();
        }
        t.batch(3, "key-0=last", "key-30=last");
        t.batch(4, "end=1");
        t.set("cleanup.policy", "compact");
        t.awaitClean(152);
        write(t.name);
      }
    }
  }

  static void idempotent() throws Exception {
    try (var t = new Topic("idempotent", "none", true);
        var other = new KafkaProducer<String, String>(
            Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer())) {
      t.batch(0, "a=1", "b=1");
      t.batch(0, "a=2", "b=2");
      other.send(new ProducerRecord<>(t.name, 0, T0 + 1000, "a", "other")).get();
      other.send(new ProducerRecord<>(t.name, 0, T0 + 1000, "b", "other")).get();
      other.send(new ProducerRecord<>(t.name, 0, T0 + 2000, "end", "1")).get();
      t.set("cleanup.policy", "compact");
      t.awaitClean(6);
      // The producer whose records are all gone goes on with its sequence.
      t.batch(2, "c=1");
      write(t.name);
    }
  }

  static void headers() throws Exception {
    record H(String key, byte[] value) implements Header {}
    try (var t = new Topic("headers", "zstd", true)) {
      Header[] all = {
        new H("a", "1".getBytes()), new H("b", null), new H("a", "3".getBytes()), new H("", new byte[0])
      };
      t.send(0, "over", "1", all);
      t.send(0, "kept", "1", all);
      t.producer.flush();
      t.send(0, "gone", null, all);
      t.producer.flush();
      t.batch(1, "over=2");
      t.batch(2, "end=1");
      t.set("cleanup.policy", "compact");
      t.awaitClean(4);
      write(t.name);
    }
  }

  static void sizes() throws Exception {
    var random = new Random(7);
    try (var t = new Topic("sizes", "none", true, "segment.ms", "86400000", "segment.bytes", "1048576",
        "index.interval.bytes", "1000")) {
      for (int i = 0; i < 60; i++) {
        var value = new StringBuilder();
        while (value.length() < 100_000) value.append((char) ('a' + random.nextInt(26)));
        t.batch(0, "key-" + (i < 30 ? i : i % 4) + "=" + value);
      }
      t.set("cleanup.policy", "compact");
      t.awaitClean(50);
      write(t.name);
    }
  }

  static void compactDelete() throws Exception {
    try (var t = new Topic("compact-delete", "none", true)) {
      t.batch(0, "a=1", "b=1");
      t.batch(1, "a=2", "a=3");
      t.batch(2, "c=1", "end=1");
      t.set("cleanup.policy", "compact,delete");
      t.awaitClean(4);
      write(t.name);
      t.set("retention.ms", "3600000");
      try (var consumer = new KafkaConsumer<>(
          Map.<String, Object>of("bootstrap.servers", bootstrap), new StringDeserializer(), new StringDeserializer())) {
        var p = new TopicPartition(t.name, 0);
        for (int i = 0; i < 300 && consumer.beginningOffsets(List.of(p)).get(p) < 6; i++) Thread.sleep(100);
      }
      Files.move(out.resolve(t.name), out.resolve("compact-delete-before"));
      Thread.sleep(1000);
      write(t.name);
    }
  }

  static void withoutKey() throws Exception {
    List<String> lines = new ArrayList<>();
    try (var t = new Topic("without-key", "none", true, "cleanup.policy", "compact")) {
      Future<RecordMetadata> refused = t.send(0, null, "x");
      t.producer.flush();
      try {
        lines.add("taken at " + refused.get().offset());
      } catch (ExecutionException e) {
        lines.add(e.getCause().getClass().getSimpleName());
      }
      t.batch(0, "a=1");
      write(t.name);
    }
    lines.addAll(lines(out.resolve("without-key")));
    Files.write(out.resolve("without-key"), lines);
  }

  interface Part {
    void run() throws Exception;
  }

  public static void main(String[] args) throws Exception {
    bootstrap = args[0];
    data = Path.of(args[1]);
    out = Files.createDirectories(Path.of(args[2]));
    admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    List<Part> parts =
        List.of(
            Compaction::plain, Compaction::tombstones, Compaction::codecs, Compaction::idempotent,
            Compaction::headers, Compaction::sizes, Compaction::compactDelete, Compaction::withoutKey);
    var pool = Executors.newFixedThreadPool(4);
    List<Future<?>> running = new ArrayList<>();
    for (Part part : parts)
      running.add(
          pool.submit(
              () -> {
                part.run();
                return null;
              }));
    int failed = 0;
    for (Future<?> one : running) {
      try {
        one.get(90, TimeUnit.SECONDS);
      } catch (Exception e) {
        failed++;
        e.printStackTrace();
      }
    }
    System.exit(failed == 0 ? 0 : 1);
  }
}
