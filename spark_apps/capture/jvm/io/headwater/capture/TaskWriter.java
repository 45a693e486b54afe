package io.headwater.capture;

import io.headwater.capture.Bytes.Piece;
import java.io.Serializable;
import java.security.GeneralSecurityException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
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
  private static final Piece MEMBER_HEAD = new Piece("\":{\"prov:collection\":\"");
  private static final Piece MEMBER_MIDDLE = new Piece("\",\"prov:entity\":\"");
  private static final Piece DERIVED_HEAD = new Piece("\":{\"prov:generatedEntity\":\"");
  private static final Piece DERIVED_MIDDLE = new Piece("\",\"prov:usedEntity\":\"");
  private static final Piece EDGE_START = new Piece("\"_:");
  private static final Piece EDGE_END = new Piece("\"},");
  private static final Piece KEYED_INPUT = new Piece("k:");
  private static final Piece OUTPUT = new Piece("o:");
  private static final Piece GROUP = new Piece("run:g");
  private static final Piece ALIAS = new Piece("p:");
  private static final byte[] HEX = Bytes.ascii("0123456789ABCDEF");
  /** Enough to see that a joined record was told a moment ago; a miss costs only a repeated edge. */
  private static final int RECENT = 1 << 13;

  private final TapKind kind;
  private final RunInfo run;
  private final String tap;
  private final String function;
  /** Of an output tap: everything of the output's id before the part file, or before the key. */
  private final String target;
  private final String suffix;
  /** Under which keys that may be personal are hashed into ids; null where they stand as they are. */
  private final byte[] keySecret;

  private transient boolean open;
  private transient boolean tellsMembers;
  private transient Bytes buffer;
  private transient Bytes subject;
  private transient int edges;
  private transient int seq;
  private transient long position;
  private transient long subjectA;
  private transient long subjectB;
  private transient Aliases aliases;
  private transient long[] recent;
  private transient long lastFile;
  private transient Piece lastFilePrefix;
  private transient Map<Long, Piece> filePrefixes;
  private transient StringBuilder prefixes;
  private transient MessageSink sink;
  private transient String attempt;
  private transient String task;
  private transient String outputPrefix;
  private transient Mac mac;

  TaskWriter(
      TapKind kind, RunInfo run, String tap, String function, String target, String suffix, byte[] keySecret) {
    this.kind = kind;
    this.run = run;
    this.tap = tap;
    this.function = function;
    this.target = target;
    this.suffix = suffix;
    this.keySecret = keySecret;
  }

  TapKind kind() {
    return kind;
  }

  /** The row belongs to this group; its tokens are members. */
  public void beginGroup(long a, long b) {
    open();
    subjectA = a;
    subjectB = b;
    int alias = aliases.of(a, b);
    if (alias == Aliases.NONE || aliases.isFresh()) {
      nameGroup(a, b);
    }
    if (alias == Aliases.NONE) {
      return;
    }
    if (aliases.isFresh()) {
      sealIfFull();
      beginEdge();
      putAlias(buffer, alias);
      buffer.put(EDGE_END);
    }
    subject.size = 0;
    putAlias(subject, alias);
  }

  /** The row is an input record with a declared key, and stands for it under the group (a, b). */
  public void keyedInput(long a, long b, ArrayData key) {
    open();
    nameGroup(a, b);
    sealIfFull();
    beginEdge();
    buffer.put(KEYED_INPUT);
    putKey(key);
    buffer.put(EDGE_END);
  }

  /** The row is the next record of this task's file. */
  public void beginRow() {
    open();
    nameOutput(position++);
  }

  /** The row is the next line of this task's file; its line break is one byte more. */
  public void beginLine(int bytes) {
    open();
    nameOutput(position);
    position += bytes + 1L;
  }

  /** The row is an output record with a declared key. */
  public void beginKeyed(ArrayData key) {
    open();
    int mark = buffer.size;
    buffer.put(OUTPUT);
    putKey(key);
    int length = buffer.size - mark;
    if (length > subject.array.length - Bytes.SLACK) {
      subject = new Bytes(length * 2);
    }
    System.arraycopy(buffer.array, mark, subject.array, 0, length);
    subject.size = length;
    buffer.size = mark;
  }

  /** One record, or one group of records, that the row depends on. */
  public void token(long a, long b) {
    if (recent != null && toldRecently(a, b)) {
      return;
    }
    if (a < 0) {
      sealIfFull();
      beginEdge();
      buffer.put(GROUP);
      buffer.putHash(run.hide(a, b, 0), run.hide(a, b, 1));
    } else {
      Piece prefix = prefixOf(a); // before the edge begins: it may add to the message's prefixes
      beginEdge();
      buffer.put(prefix);
      buffer.putNumber(b);
    }
    buffer.put(EDGE_END);
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
    tellsMembers = kind == TapKind.GROUP || kind == TapKind.KEYED_INPUT;
    buffer = new Bytes(SEAL_BYTES + ROOM);
    subject = new Bytes(256);
    aliases = kind == TapKind.GROUP ? new Aliases() : null;
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
    buffer.size = 0;
    edges = 0;
    filePrefixes.clear();
    lastFilePrefix = null;
    prefixes = new StringBuilder();
  }

  private void sealIfFull() {
    if (buffer.size + prefixes.length() > SEAL_BYTES) {
      seal();
      startMessage();
    }
  }

  private void beginEdge() {
    buffer.put(EDGE_START);
    buffer.putNumber(edges++);
    buffer.put(tellsMembers ? MEMBER_HEAD : DERIVED_HEAD);
    buffer.put(subject);
    buffer.put(tellsMembers ? MEMBER_MIDDLE : DERIVED_MIDDLE);
  }

  private void seal() {
    if (edges == 0) {
      return;
    }
    StringBuilder head = new StringBuilder(256);
    head.append("{\"prefix\":{\"lake\":\"urn:lake:\",\"run\":\"urn:run:").append(run.run).append(":\"");
    switch (kind) {
      case GROUP:
        // By the attempt, not the task: one that is told twice must not take another's parts for its own.
        head.append(",\"p\":\"urn:run:").append(run.run).append(":p").append(attempt).append(".\"");
        break;
      case KEYED_INPUT:
        head.append(",\"k\":\"").append(target).append('"');
        break;
      default:
        head.append(",\"o\":\"").append(outputPrefix).append('"');
    }
    head.append(prefixes).append("},\"").append(tellsMembers ? "hadMember" : "wasDerivedFrom").append("\":{");
    byte[] start = Bytes.ascii(head.toString());
    int size = buffer.size;
    byte[] value = new byte[start.length + size + 1];
    System.arraycopy(start, 0, value, 0, start.length);
    System.arraycopy(buffer.array, 0, value, start.length, size - 1); // without the last comma
    value[value.length - 2] = '}';
    value[value.length - 1] = '}';
    sink.send(run.headers(attempt, seq, task, function), value);
    seq++;
  }

  private Piece prefixOf(long file) {
    sealIfFull(); // here, because what it binds must stand in the same message as the edge that follows
    if (file == lastFile && lastFilePrefix != null) {
      return lastFilePrefix;
    }
    Piece known = filePrefixes.get(file);
    if (known == null) {
      String name = run.files.get(file);
      if (name == null) {
        throw new IllegalStateException(
            "a file was read that was not there when the input was opened; write new files into a new version.");
      }
      String prefix = "f" + filePrefixes.size();
      prefixes.append(",\"").append(prefix).append("\":\"").append(name).append('"');
      known = new Piece(prefix + ":");
      filePrefixes.put(file, known);
    }
    lastFile = file;
    lastFilePrefix = known;
    return known;
  }

  private void nameOutput(long place) {
    subject.size = 0;
    subject.put(OUTPUT);
    subject.putNumber(place);
  }

  private void nameGroup(long a, long b) {
    subject.size = 0;
    subject.put(GROUP);
    subject.putHash(run.hide(a, b, 0), run.hide(a, b, 1));
  }

  private static void putAlias(Bytes into, int alias) {
    into.put(ALIAS);
    into.putNumber(alias);
  }

  /** The key as it stands in an id: its components encoded with commas between, or their keyed hash. */
  private void putKey(ArrayData components) {
    int start = buffer.size;
    for (int i = 0; i < components.numElements(); i++) {
      if (components.isNullAt(i)) {
        throw new IllegalStateException("a record's declared key is null; a key must name its record.");
      }
      if (i > 0) {
        buffer.array[buffer.size++] = ',';
      }
      byte[] bytes = components.getUTF8String(i).getBytes();
      if (buffer.size - start + 3 * bytes.length > ROOM / 2) {
        throw new IllegalStateException("a record's key is longer than 20 kB; no message can carry its id.");
      }
      for (byte one : bytes) {
        putEncoded(one);
      }
    }
    if (keySecret != null) {
      byte[] hidden = Bytes.ascii(hashKey(buffer.array, start, buffer.size - start));
      buffer.size = start;
      buffer.put(hidden);
    }
  }

  private String hashKey(byte[] bytes, int from, int length) {
    try {
      if (mac == null) {
        mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(keySecret, "HmacSHA256"));
      }
      mac.update(bytes, from, length);
      return "hmac:" + HexFormat.of().formatHex(mac.doFinal());
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException("this JVM cannot hash keys", error);
    }
  }

  private void putEncoded(byte one) {
    int code = one & 0xff;
    boolean plain =
        code >= 'a' && code <= 'z' || code >= 'A' && code <= 'Z' || code >= '0' && code <= '9'
            || code == '_' || code == '.' || code == '-' || code == '~' || code == '=';
    if (plain) {
      buffer.array[buffer.size++] = one;
    } else {
      buffer.array[buffer.size++] = '%';
      buffer.array[buffer.size++] = HEX[code >>> 4];
      buffer.array[buffer.size++] = HEX[code & 15];
    }
  }
}
