// Writes the topic whose files lie beside this source; see README.md.
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class GoldenWriter {
    static final long START_MS = 1_600_000_000_000L;
    static String bootstrap;

    static KafkaProducer<byte[], byte[]> producer(Object... settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("linger.ms", "60000");
        for (int i = 0; i < settings.length; i += 2) properties.put((String) settings[i], settings[i + 1]);
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static int sent = 0;

    static void send(KafkaProducer<byte[], byte[]> producer, long timestamp) {
        byte[] value = ("record " + sent++ + " of the golden topic, made to be read again").getBytes();
        producer.send(new ProducerRecord<>("golden", 0, timestamp, ("key " + sent % 7).getBytes(), value));
    }

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            NewTopic topic = new NewTopic("golden", 1, (short) 1).configs(Map.of(
                "index.interval.bytes", "512", "segment.ms", "100000", "retention.ms", "-1"));
            admin.createTopics(List.of(topic)).all().get();
            admin.createTopics(List.of(new NewTopic("empty", 2, (short) 1))).all().get();
        }
        // Plain batches of five; the timestamps within a batch do not rise.
        try (KafkaProducer<byte[], byte[]> plain = producer()) {
            for (int batch = 0; batch < 12; batch++) {
                for (int i = 0; i < 5; i++) send(plain, START_MS + batch * 1000 + (i * 7 % 5));
                plain.flush();
            }
        }
        // A new segment, because the timestamps are far ahead; one batch of each codec.
        for (String codec : List.of("gzip", "snappy", "lz4", "zstd")) {
            try (KafkaProducer<byte[], byte[]> compressed = producer("compression.type", codec)) {
                for (int i = 0; i < 5; i++) send(compressed, START_MS + 200_000 + (i * 7 % 5));
                compressed.flush();
            }
        }
        // A third segment with a committed and an aborted transaction, and one left open.
        try (KafkaProducer<byte[], byte[]> transactional = producer("transactional.id", "golden")) {
            transactional.initTransactions();
            for (int txn = 0; txn < 3; txn++) {
                transactional.beginTransaction();
                for (int i = 0; i < 3; i++) send(transactional, START_MS + 400_000 + txn);
                transactional.flush();
                if (txn == 1) transactional.abortTransaction();
                else transactional.commitTransaction();
            }
        }
        KafkaProducer<byte[], byte[]> open = producer("transactional.id", "open");
        open.initTransactions();
        open.beginTransaction();
        for (int i = 0; i < 2; i++) send(open, START_MS + 400_010);
        open.flush();
        Runtime.getRuntime().halt(0);
    }
}
