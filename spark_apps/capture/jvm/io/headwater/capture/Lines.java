package io.headwater.capture;

import java.util.HashMap;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.util.StringUtils;
import org.apache.spark.api.java.JavaNewHadoopRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Tuple2;

/** Text files as rows of (file token, byte offset, line), which Spark's own text source cannot give. */
public final class Lines {
  private Lines() {}

  /** Reads files, each under its token, those that were rewritten by their places; only a line feed ends a line. */
  public static Dataset<Row> read(
      SparkSession session, HashMap<String, Long> tokens, HashMap<String, Places> places, String a, String b) {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(session.sparkContext());
    Configuration conf = new Configuration(context.hadoopConfiguration());
    conf.set("textinputformat.record.delimiter", "\n");
    conf.set(FileInputFormat.INPUT_DIR, paths(tokens.keySet()));
    @SuppressWarnings("unchecked")
    JavaNewHadoopRDD<LongWritable, Text> lines =
        (JavaNewHadoopRDD<LongWritable, Text>)
            context.newAPIHadoopRDD(conf, TextInputFormat.class, LongWritable.class, Text.class);
    JavaRDD<InternalRow> rows =
        lines.mapPartitionsWithInputSplit(
            (split, pairs) -> new Rows(given(tokens, split), places.get(pathOf(split)), pairs), true);
    StructType schema =
        new StructType()
            .add(a, DataTypes.LongType, false)
            .add(b, DataTypes.LongType, false)
            .add("value", DataTypes.StringType, false);
    return ((org.apache.spark.sql.classic.SparkSession) session)
        .internalCreateDataFrame(rows.rdd(), schema, false);
  }

  /**
   * Reads files as texts `name:offset<tab>line`, each under the short name that it is given; for RDDs, which Python
   * reads as texts far quicker than as rows.
   */
  public static JavaRDD<String> texts(
      SparkSession session, HashMap<String, String> names, HashMap<String, Places> places, int minPartitions) {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(session.sparkContext());
    Configuration conf = new Configuration(context.hadoopConfiguration());
    conf.set("textinputformat.record.delimiter", "\n");
    conf.set(FileInputFormat.INPUT_DIR, paths(names.keySet()));
    long total = 0;
    for (String path : names.keySet()) {
      total += new java.io.File(path).length();
    }
    // As Spark's textFile does: at least so many partitions where the files can be split.
    conf.setLong("mapreduce.input.fileinputformat.split.maxsize", Math.max(1, total / Math.max(1, minPartitions) + 1));
    @SuppressWarnings("unchecked")
    JavaNewHadoopRDD<LongWritable, Text> lines =
        (JavaNewHadoopRDD<LongWritable, Text>)
            context.newAPIHadoopRDD(conf, TextInputFormat.class, LongWritable.class, Text.class);
    return lines.mapPartitionsWithInputSplit(
        (split, pairs) -> {
          String name = given(names, split);
          Places moved = places.get(pathOf(split));
          return new Iterator<String>() {
            @Override
            public boolean hasNext() {
              return pairs.hasNext();
            }

            @Override
            public String next() {
              Tuple2<LongWritable, Text> pair = pairs.next();
              return name + ":" + original(moved, pair._1.get()) + "\t" + pair._2;
            }
          };
        },
        true);
  }

  /** Paths as Hadoop takes several of them: commas part them, and braces, brackets and stars would be patterns. */
  private static String paths(Iterable<String> files) {
    StringBuilder joined = new StringBuilder();
    for (String file : files) {
      String plain = file.replaceAll("([\\[\\]{}*?\\\\])", "\\\\$1");
      joined.append(joined.length() == 0 ? "" : ",").append(StringUtils.escapeString(plain));
    }
    return joined.toString();
  }

  private static <T> T given(HashMap<String, T> files, InputSplit split) {
    T known = files.get(pathOf(split));
    if (known == null) {
      throw new IllegalStateException("a file was read that was not there when the input was opened: " + pathOf(split));
    }
    return known;
  }

  /** A file as its reader was told of it: by its path on this machine, or else by its address. */
  private static String pathOf(InputSplit split) {
    Path path = ((FileSplit) split).getPath();
    String scheme = path.toUri().getScheme();
    return scheme == null || scheme.equals("file") ? path.toUri().getPath() : path.toString();
  }

  private static long original(Places places, long offset) {
    return places == null ? offset : places.original(offset);
  }

  private static final class Rows implements Iterator<InternalRow> {
    private final long token;
    private final Places places;
    private final Iterator<Tuple2<LongWritable, Text>> pairs;

    Rows(long token, Places places, Iterator<Tuple2<LongWritable, Text>> pairs) {
      this.token = token;
      this.places = places;
      this.pairs = pairs;
    }

    @Override
    public boolean hasNext() {
      return pairs.hasNext();
    }

    @Override
    public InternalRow next() {
      Tuple2<LongWritable, Text> pair = pairs.next();
      Text line = pair._2;
      // Hadoop reuses its objects, so the bytes are copied.
      byte[] bytes = line.copyBytes();
      return new GenericInternalRow(new Object[] {token, original(places, pair._1.get()), UTF8String.fromBytes(bytes)});
    }
  }
}
