package io.headwater.capture;

import java.io.Serializable;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.HashMap;

/** How an executor reaches the transport; its secrets travel with the task and are printed nowhere. */
public final class SinkConfig implements Serializable {
  private static final long serialVersionUID = 1L;
  private static String host;

  final String topic;
  final String partitioning;
  /** Whether a job goes on without its provenance when the sink fails; its account will then say partial. */
  final boolean degrade;
  final long timeoutMillis;
  /** A folder for recordings, or null for Kafka. */
  final String folder;
  final HashMap<String, Object> kafka;

  public SinkConfig(
      String topic,
      String partitioning,
      boolean degrade,
      long timeoutMillis,
      String folder,
      HashMap<String, Object> kafka) {
    this.topic = topic;
    this.partitioning = partitioning;
    this.degrade = degrade;
    this.timeoutMillis = timeoutMillis;
    this.folder = folder;
    this.kafka = kafka;
  }

  MessageSink open(String attempt) {
    return folder != null ? new RecordingSink(this, attempt) : new KafkaSink(this);
  }

  String node() {
    return nodeName();
  }

  private static synchronized String nodeName() {
    if (host == null) {
      try {
        host = InetAddress.getLocalHost().getHostName();
      } catch (UnknownHostException error) {
        host = "unknown";
      }
    }
    return host;
  }

  @Override
  public String toString() {
    return "SinkConfig(" + topic + ")";
  }
}
