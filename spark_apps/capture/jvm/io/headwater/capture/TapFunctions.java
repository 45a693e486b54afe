package io.headwater.capture;

import java.util.function.Function;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.catalyst.expressions.XxHash64;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/** Makes taps callable by name from a DataFrame, in whatever language it is written. */
public final class TapFunctions {
  private TapFunctions() {}

  /** Registers a function of this name whose calls are a tap of a run; with a secret, keys are hashed under it. */
  public static void register(
      SparkSession session,
      String name,
      String tap,
      RunInfo run,
      String kind,
      String function,
      String target,
      String suffix,
      byte[] keySecret) {
    TaskWriter writer = new TaskWriter(TapKind.valueOf(kind), run, tap, function, target, suffix, keySecret);
    put(session, name, columns -> new Tap(columns, writer));
  }

  /** Registers what tokens are made with: the token of a file's address, and a hash of columns under a seed. */
  public static void registerTokens(SparkSession session) {
    put(session, "headwater_file", FileToken::new);
    // The seed is a literal, first among the columns; hashed here and not for every row.
    put(
        session,
        "headwater_hash",
        columns -> {
          UTF8String seed = (UTF8String) ((Literal) columns.apply(0)).value();
          return new XxHash64((Seq<Expression>) columns.drop(1), XXH64.hashUTF8String(seed, 0));
        });
  }

  /** Forgets the function; plans that were built with it keep their tap. */
  public static void unregister(SparkSession session, String name) {
    ((org.apache.spark.sql.classic.SparkSession) session)
        .sessionState()
        .functionRegistry()
        .dropFunction(new org.apache.spark.sql.catalyst.FunctionIdentifier(name));
  }

  private static void put(SparkSession session, String name, Function<Seq<Expression>, Expression> make) {
    ((org.apache.spark.sql.classic.SparkSession) session)
        .sessionState()
        .functionRegistry()
        .createOrReplaceTempFunction(name, new Builder(make), "scala_udf");
  }

  private static final class Builder extends AbstractFunction1<Seq<Expression>, Expression> {
    private final Function<Seq<Expression>, Expression> make;

    Builder(Function<Seq<Expression>, Expression> make) {
      this.make = make;
    }

    @Override
    public Expression apply(Seq<Expression> columns) {
      return make.apply(columns);
    }
  }
}
