package io.headwater.capture;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.zip.CRC32;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sends through one idempotent producer per executor, and knows of each of its own messages what became of it. */
final class KafkaSink implements MessageSink {
  private static final Logger LOG = LoggerFactory.getLogger(KafkaSink.class);
  private static final Map<String, KafkaProducer<byte[], byte[]>> PRODUCERS = new HashMap<>();
  /** Under `degrade`, how long after a failure the tasks of this executor do not wait for the broker again. */
  private static final long PAUSE_MILLIS = 30_000;
  private static volatile long brokenUntil;

  private final SinkConfig config;
  private final AtomicInteger unconfirmed = new AtomicInteger();
  private final AtomicReference<Exception> failure = new AtomicReference<>();
  private int partitions;
  private boolean given;

  KafkaSink(SinkConfig config) {
    this.config = config;
  }

  @Override
  public void send(Map<String, byte[]> headers, byte[] value) {
    if (config.degrade && System.currentTimeMillis() < brokenUntil) {
      failure.compareAndSet(null, new IllegalStateException("the broker failed a moment ago"));
    }
    if (stopped()) {
      return;
    }
    try {
      KafkaProducer<byte[], byte[]> producer = producer(config);
      if (partitions == 0) {
        partitions = producer.partitionsFor(config.topic).size();
      }
      List<Header> list = new ArrayList<>(headers.size());
      headers.forEach((name, bytes) -> list.add(new RecordHeader(name, bytes)));
      unconfirmed.incrementAndGet();
      producer.send(
          new ProducerRecord<>(config.topic, partitionOf(headers), null, null, value, list),
          (place, error) -> {
            if (error != null) {
              failure.compareAndSet(null, error);
            }
            if (unconfirmed.decrementAndGet() == 0) {
              synchronized (unconfirmed) {
                unconfirmed.notifyAll();
              }
            }
          });
    } catch (RuntimeException error) {
      failure.compareAndSet(null, error);
      stopped();
    }
  }

  @Override
  public void close() {
    long deadline = System.currentTimeMillis() + config.timeoutMillis;
    synchronized (unconfirmed) {
      while (unconfirmed.get() > 0 && failure.get() == null) {
        long left = deadline - System.currentTimeMillis();
        if (left <= 0) {
          failure.compareAndSet(null, new java.util.concurrent.TimeoutException("no confirmation in time"));
          break;
        }
        try {
          unconfirmed.wait(Math.min(left, 100));
        } catch (InterruptedException stop) {
          Thread.currentThread().interrupt();
          throw new IllegalStateException("interrupted while provenance was being confirmed", stop);
        }
      }
    }
    stopped();
  }

  @Override
  public void abort() {
    // What was sent stays in the topic under an attempt that no manifest lists.
  }

  /** Whether sending has ended in failure; under the policy `fail` that fails the task. */
  private boolean stopped() {
    Exception error = failure.get();
    if (error == null) {
      return false;
    }
    if (!config.degrade) {
      throw new IllegalStateException(
          "Provenance could not be sent to Kafka topic " + config.topic + ": " + error
              + ". The policy is `fail`; with `degrade` the job would go on and its account say partial.", error);
    }
    if (!given) {
      given = true;
      brokenUntil = System.currentTimeMillis() + PAUSE_MILLIS;
      LOG.warn("Provenance is lost from here on; the run's account will say partial: {}", error.toString());
    }
    return true;
  }

  private int partitionOf(Map<String, byte[]> headers) {
    CRC32 crc = new CRC32();
    switch (config.partitioning) {
      case "horizontal":
        crc.update(headers.get("function"));
        break;
      case "vertical":
        crc.update(headers.get("node"));
        crc.update('/');
        crc.update(headers.get("task"));
        break;
      default:
        crc.update(headers.get("attempt"));
        crc.update('/');
        crc.update(headers.get("seq"));
    }
    return (int) (crc.getValue() % partitions);
  }

  private static KafkaProducer<byte[], byte[]> producer(SinkConfig config) {
    synchronized (PRODUCERS) {
      // Properties hold secrets, so the key is what identifies them without telling them.
      String key = config.kafka.get("bootstrap.servers") + "#" + config.kafka.hashCode();
      return PRODUCERS.computeIfAbsent(
          key,
          absent -> {
            // Kafka loads its serialisers through the thread's loader, which in a task is Spark's.
            ClassLoader before = Thread.currentThread().getContextClassLoader();
            Thread.currentThread().setContextClassLoader(KafkaProducer.class.getClassLoader());
            try {
              return new KafkaProducer<>(config.kafka);
            } finally {
              Thread.currentThread().setContextClassLoader(before);
            }
          });
    }
  }

}
