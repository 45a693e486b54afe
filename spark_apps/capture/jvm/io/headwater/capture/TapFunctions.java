package io.headwater.capture;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/** Makes taps callable by name from a DataFrame, in whatever language it is written. */
public final class TapFunctions {
  private TapFunctions() {}

  /** Registers a function of this name whose calls are a tap of a run. */
  public static void register(
      SparkSession session,
      String name,
      String tap,
      RunInfo run,
      String kind,
      String function,
      String target,
      String suffix,
      boolean hashedKey) {
    TaskWriter writer = new TaskWriter(TapKind.valueOf(kind), run, tap, function, target, suffix, hashedKey);
    ((org.apache.spark.sql.classic.SparkSession) session)
        .sessionState()
        .functionRegistry()
        .createOrReplaceTempFunction(name, new Builder(writer), "scala_udf");
  }

  /** Forgets the function; plans that were built with it keep their tap. */
  public static void unregister(SparkSession session, String name) {
    ((org.apache.spark.sql.classic.SparkSession) session)
        .sessionState()
        .functionRegistry()
        .dropFunction(new org.apache.spark.sql.catalyst.FunctionIdentifier(name));
  }

  private static final class Builder extends AbstractFunction1<Seq<Expression>, Expression> {
    private final TaskWriter writer;

    Builder(TaskWriter writer) {
      this.writer = writer;
    }

    @Override
    public Expression apply(Seq<Expression> columns) {
      return new Tap(columns, writer);
    }
  }
}
