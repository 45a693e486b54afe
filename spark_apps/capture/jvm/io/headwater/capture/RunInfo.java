package io.headwater.capture;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.CollectionAccumulator;

/** What every tap of a run shares: names, the files that tokens mean, where messages go, where receipts are left. */
public final class RunInfo implements Serializable {
  private static final long serialVersionUID = 1L;

  final String run;
  final String dic;
  /** Tells this execution's attempts from those of an earlier one under the same run id. */
  final String nonce;
  final CollectionAccumulator<String> receipts;
  final HashMap<Long, String> files = new HashMap<>();
  private final SinkConfig sinkConfig;
  private final long secretHigh;
  private final long secretLow;

  public RunInfo(
      String run,
      String dic,
      String nonce,
      CollectionAccumulator<String> receipts,
      SinkConfig sinkConfig,
      long secretHigh,
      long secretLow) {
    this.run = run;
    this.dic = dic;
    this.nonce = nonce;
    this.receipts = receipts;
    this.sinkConfig = sinkConfig;
    this.secretHigh = secretHigh;
    this.secretLow = secretLow;
  }

  /** The token that means this file from now on; the ids of its records begin with the prefix. */
  public long addFile(String address, String prefix) {
    long token = FileToken.of(UTF8String.fromString(address));
    String known = files.put(token, prefix);
    if (known != null && !known.equals(prefix)) {
      throw new IllegalStateException("two files share a hash: " + known + " and " + prefix);
    }
    return token;
  }

  MessageSink openSink(String attempt) {
    return sinkConfig.open(attempt);
  }

  Map<String, byte[]> headers(String attempt, int seq, String task, String function) {
    Map<String, byte[]> headers = new LinkedHashMap<>();
    headers.put("run", utf8(run));
    headers.put("dic", utf8(dic));
    headers.put("attempt", utf8(attempt));
    headers.put("seq", utf8(Integer.toString(seq)));
    headers.put("task", utf8(task));
    headers.put("function", utf8(function));
    headers.put("node", utf8(sinkConfig.node()));
    headers.put("kind", utf8("provenance"));
    headers.put("schema", utf8("1"));
    return headers;
  }

  /** Half of a group's hash under the run's secret, so that a group's name tells nothing of its key. */
  long hide(long a, long b, int half) {
    return SipHash.hash(secretHigh ^ half, secretLow, a, b);
  }

  static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
