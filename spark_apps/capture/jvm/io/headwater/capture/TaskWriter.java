package io.headwater.capture;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Writes the PROV-JSON of one tap in one task: edges into a buffer, the buffer into messages, a receipt at the end.
 *
 * <p>An instance is serialised with the plan and arrives fresh in every attempt of every task, so its transient state
 * belongs to that attempt alone. Ids are shortened by binding a prefix to each file's namespace: readers compare ids
 * expanded. A token's first long says what it is: a file where it is not negative, else a group.
 */
public final class TaskWriter implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final int SEAL_BYTES = 384 * 1024;
  /** No single edge is longer; a keyed id beyond it fails its task rather than its message. */
  private static final int ROOM = 128 * 1024;
  private static final byte[] MEMBER_HEAD = ascii("\":{\"prov:collection\":\"");
  private static final byte[] MEMBER_MIDDLE = ascii("\",\"prov:entity\":\"");
  private static final byte[] DERIVED_HEAD = ascii("\":{\"prov:generatedEntity\":\"");
  private static final byte[] DERIVED_MIDDLE = ascii("\",\"prov:usedEntity\":\"");
  private static final byte[] EDGE_START = ascii("\"_:");
  private static final byte[] EDGE_END = ascii("\"},");
  private static final byte[] DIGITS =
      ascii("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");
  private static final byte[] HEX = ascii("0123456789ABCDEF");
  private static final byte[] K = ascii("k:");
  private static final byte[] O = ascii("o:");
  private static final byte[] G = ascii("run:g");
  /** Enough to see that a joined record was told a moment ago; a miss costs only a repeated edge. */
  private static final int RECENT = 1 << 12;

  private final TapKind kind;
  private final RunInfo run;
  private final String tap;
  private final String function;
  /** Of an output tap: everything of the output's id before the part file, or before the key. */
  private final String target;
  private final String suffix;
  private final boolean hashedKey;

  private transient boolean open;
  private transient byte[] buffer;
  private transient int size;
  private transient int edges;
  private transient int seq;
  private transient long position;
  private transient byte[] subject;
  private transient int subjectSize;
  private transient long subjectA;
  private transient long subjectB;
  private transient long[] recent;
  private transient long lastFile;
  private transient byte[] lastFilePrefix;
  private transient Map<Long, byte[]> filePrefixes;
  private transient StringBuilder prefixes;
  private transient MessageSink sink;
  private transient String attempt;
  private transient String task;
  private transient String outputPrefix;

  TaskWriter(
      TapKind kind, RunInfo run, String tap, String function, String target, String suffix, boolean hashedKey) {
    this.kind = kind;
    this.run = run;
    this.tap = tap;
    this.function = function;
    this.target = target;
    this.suffix = suffix;
    this.hashedKey = hashedKey;
  }

  TapKind kind() {
    return kind;
  }

  /** The row belongs to this group; its tokens are members. */
  public void beginGroup(long a, long b) {
    open();
    subjectSize = 0;
    subjectA = a;
    subjectB = b;
    putGroup(a, b);
  }

  /** The row is an input record with a declared key, and stands for it under the group (a, b). */
  public void keyedInput(long a, long b, ArrayData key) {
    beginGroup(a, b);
    sealIfFull();
    beginEdge();
    put(K);
    putKey(key);
    endEdge();
  }

  /** The row is the next record of this task's file. */
  public void beginRow() {
    open();
    subjectSize = 0;
    putSubject(position++);
  }

  /** The row is the next line of this task's file; its line break is one byte more. */
  public void beginLine(int bytes) {
    open();
    subjectSize = 0;
    putSubject(position);
    position += bytes + 1L;
  }

  /** The row is an output record with a declared key. */
  public void beginKeyed(ArrayData key) {
    open();
    int mark = size;
    put(O);
    putKey(key);
    subjectSize = size - mark;
    if (subjectSize > subject.length) {
      subject = new byte[subjectSize * 2];
    }
    System.arraycopy(buffer, mark, subject, 0, subjectSize);
    size = mark;
  }

  /** One record, or one group of records, that the row depends on. */
  public void token(long a, long b) {
    if (kind == TapKind.GROUP && toldRecently(a, b)) {
      return;
    }
    if (a < 0) {
      sealIfFull();
      beginEdge();
      put(G);
      putHash(buffer, size, run.hide(a, b, 0), run.hide(a, b, 1));
      size += 22;
    } else {
      byte[] prefix = prefixOf(a); // before the edge begins: it may add to the message's prefixes
      beginEdge();
      put(prefix);
      putNumber(b);
    }
    endEdge();
  }

  /** Several tokens at once, as a window's frame gathers them. */
  public void tokens(ArrayData pairs) {
    if (pairs == null) {
      return;
    }
    for (int i = 0; i < pairs.numElements(); i++) {
      if (!pairs.isNullAt(i)) {
        InternalRow pair = pairs.getStruct(i, 2);
        if (!pair.isNullAt(0)) {
          token(pair.getLong(0), pair.getLong(1));
        }
      }
    }
  }

  private boolean toldRecently(long a, long b) {
    long mixed = (subjectA * 31 + subjectB) * 31 + a * 0x9E3779B97F4A7C15L + b;
    int slot = ((int) (mixed ^ (mixed >>> 29)) & (RECENT - 1)) * 4;
    if (recent[slot] == subjectA && recent[slot + 1] == subjectB && recent[slot + 2] == a && recent[slot + 3] == b) {
      return true;
    }
    recent[slot] = subjectA;
    recent[slot + 1] = subjectB;
    recent[slot + 2] = a;
    recent[slot + 3] = b;
    return false;
  }

  private void open() {
    if (open) {
      return;
    }
    TaskContext context = TaskContext.get();
    if (context == null) {
      throw new IllegalStateException("a tap was evaluated outside a task; its plan cannot be captured.");
    }
    open = true;
    buffer = new byte[SEAL_BYTES + ROOM];
    subject = new byte[256];
    recent = kind == TapKind.GROUP ? new long[RECENT * 4] : null;
    filePrefixes = new HashMap<>();
    task = "s" + context.stageId() + "-p" + context.partitionId();
    attempt =
        run.nonce
            + "-s" + context.stageId() + "." + context.stageAttemptNumber()
            + "-p" + context.partitionId() + "." + context.attemptNumber()
            + "-" + tap;
    outputPrefix =
        kind == TapKind.KEYED ? target : String.format("%spart-%05d%s#", target, context.partitionId(), suffix);
    sink = run.openSink(attempt);
    startMessage();
    context.addTaskCompletionListener(
        (TaskCompletionListener) done -> {
          if (done.isInterrupted() || done.isFailed()) {
            sink.abort();
          } else {
            close();
          }
        });
  }

  private void close() {
    seal();
    sink.close();
    run.receipts.add(attempt + "\t" + seq);
  }

  private void startMessage() {
    size = 0;
    edges = 0;
    filePrefixes.clear();
    lastFilePrefix = null;
    prefixes = new StringBuilder();
  }

  private void sealIfFull() {
    if (size + prefixes.length() > SEAL_BYTES) {
      seal();
      startMessage();
    }
  }

  private void beginEdge() {
    put(EDGE_START);
    putNumber(edges++);
    boolean member = kind == TapKind.GROUP || kind == TapKind.KEYED_INPUT;
    put(member ? MEMBER_HEAD : DERIVED_HEAD);
    System.arraycopy(subject, 0, buffer, size, subjectSize);
    size += subjectSize;
    put(member ? MEMBER_MIDDLE : DERIVED_MIDDLE);
  }

  private void endEdge() {
    put(EDGE_END);
  }

  private void seal() {
    if (edges == 0) {
      return;
    }
    boolean member = kind == TapKind.GROUP || kind == TapKind.KEYED_INPUT;
    StringBuilder head = new StringBuilder(256);
    head.append("{\"prefix\":{\"lake\":\"urn:lake:\",\"run\":\"urn:run:").append(run.run).append(":\"");
    if (kind == TapKind.KEYED_INPUT) {
      head.append(",\"k\":\"").append(target).append('"');
    } else if (!member) {
      head.append(",\"o\":\"").append(outputPrefix).append('"');
    }
    head.append(prefixes).append("},\"").append(member ? "hadMember" : "wasDerivedFrom").append("\":{");
    byte[] start = ascii(head.toString());
    byte[] value = new byte[start.length + size + 1];
    System.arraycopy(start, 0, value, 0, start.length);
    System.arraycopy(buffer, 0, value, start.length, size - 1); // without the last comma
    value[value.length - 2] = '}';
    value[value.length - 1] = '}';
    sink.send(run.headers(attempt, seq, task, function), value);
    seq++;
  }

  private byte[] prefixOf(long file) {
    sealIfFull(); // here, because what it binds must stand in the same message as the edge that follows
    if (file == lastFile && lastFilePrefix != null) {
      return lastFilePrefix;
    }
    byte[] known = filePrefixes.get(file);
    if (known == null) {
      String name = run.files.get(file);
      if (name == null) {
        throw new IllegalStateException(
            "a file was read that was not there when the input was opened; write new files into a new version.");
      }
      String prefix = "f" + filePrefixes.size();
      prefixes.append(",\"").append(prefix).append("\":\"").append(name).append('"');
      known = ascii(prefix + ":");
      filePrefixes.put(file, known);
    }
    lastFile = file;
    lastFilePrefix = known;
    return known;
  }

  private void putSubject(long number) {
    subject[0] = 'o';
    subject[1] = ':';
    subjectSize = 2 + writeNumber(subject, 2, number);
  }

  private void putGroup(long a, long b) {
    subject[0] = 'r';
    subject[1] = 'u';
    subject[2] = 'n';
    subject[3] = ':';
    subject[4] = 'g';
    putHash(subject, 5, run.hide(a, b, 0), run.hide(a, b, 1));
    subjectSize = 27;
  }

  /** The key as it stands in an id: its components encoded with commas between, or their keyed hash. */
  private void putKey(ArrayData components) {
    int start = size;
    for (int i = 0; i < components.numElements(); i++) {
      if (components.isNullAt(i)) {
        throw new IllegalStateException("a record's declared key is null; a key must name its record.");
      }
      if (i > 0) {
        buffer[size++] = ',';
      }
      byte[] bytes = components.getUTF8String(i).getBytes();
      if (size - start + 3 * bytes.length > ROOM / 2) {
        throw new IllegalStateException("a record's key is longer than 20 kB; no message can carry its id.");
      }
      for (byte one : bytes) {
        putEncoded(one);
      }
    }
    if (hashedKey) {
      byte[] hidden = ascii(run.hashKey(buffer, start, size - start));
      size = start;
      put(hidden);
    }
  }

  private void putEncoded(byte one) {
    int code = one & 0xff;
    boolean plain =
        code >= 'a' && code <= 'z' || code >= 'A' && code <= 'Z' || code >= '0' && code <= '9'
            || code == '_' || code == '.' || code == '-' || code == '~' || code == '=';
    if (plain) {
      buffer[size++] = one;
    } else {
      buffer[size++] = '%';
      buffer[size++] = HEX[code >>> 4];
      buffer[size++] = HEX[code & 15];
    }
  }

  private void put(byte[] bytes) {
    System.arraycopy(bytes, 0, buffer, size, bytes.length);
    size += bytes.length;
  }

  private void putNumber(long number) {
    size += writeNumber(buffer, size, number);
  }

  private static int writeNumber(byte[] into, int at, long number) {
    int digits = 1;
    for (long rest = number; rest >= 10; rest /= 10) {
      digits++;
    }
    long rest = number;
    for (int i = at + digits - 1; i >= at; i--) {
      into[i] = (byte) ('0' + rest % 10);
      rest /= 10;
    }
    return digits;
  }

  private static void putHash(byte[] into, int at, long high, long low) {
    int i = at;
    for (int shift = 58; shift >= 4; shift -= 6) {
      into[i++] = DIGITS[(int) (high >>> shift) & 63];
    }
    into[i++] = DIGITS[(int) ((high & 15) << 2 | low >>> 62)];
    for (int shift = 56; shift >= 2; shift -= 6) {
      into[i++] = DIGITS[(int) (low >>> shift) & 63];
    }
    into[i] = DIGITS[(int) (low & 3) << 4];
  }

  static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}
