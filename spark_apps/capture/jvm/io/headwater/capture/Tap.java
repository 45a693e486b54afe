package io.headwater.capture;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.Block;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeBlock;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.FalseLiteral$;
import org.apache.spark.sql.catalyst.expressions.codegen.TrueLiteral$;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.List$;
import scala.collection.immutable.Seq;

/**
 * An expression that is always true and, in passing, hands the lineage of its row to a {@link TaskWriter}.
 *
 * <p>Used as a filter it changes nothing about the data. It is non-deterministic, so that Spark neither moves it past
 * other operators, nor drops it, nor evaluates it twice for a row. Its children are the subject's columns, which
 * depend on the tap's kind, and then tokens: pairs of longs, or arrays of such pairs.
 */
public final class Tap extends Expression implements java.io.Serializable {
  private static final long serialVersionUID = 1L;

  private final Seq<Expression> columns;
  private final TaskWriter writer;

  Tap(Seq<Expression> columns, TaskWriter writer) {
    this.columns = columns;
    this.writer = writer;
  }

  @Override
  public boolean nullable() {
    return false;
  }

  @Override
  public DataType dataType() {
    return DataTypes.BooleanType;
  }

  @Override
  public boolean deterministic() {
    return false;
  }

  @Override
  public boolean foldable() {
    return false;
  }

  @Override
  public Seq<Expression> children() {
    return columns;
  }

  @Override
  public Object eval(InternalRow row) {
    int next = beginFrom(row);
    while (next < columns.length()) {
      Object first = columns.apply(next).eval(row);
      if (isArray(next)) {
        writer.tokens((ArrayData) first);
        next += 1;
      } else {
        if (first != null) {
          writer.token((Long) first, (Long) columns.apply(next + 1).eval(row));
        }
        next += 2;
      }
    }
    return Boolean.TRUE;
  }

  private int beginFrom(InternalRow row) {
    switch (writer.kind()) {
      case GROUP:
        writer.beginGroup((Long) columns.apply(0).eval(row), (Long) columns.apply(1).eval(row));
        return 2;
      case KEYED_INPUT:
        writer.keyedInput(
            (Long) columns.apply(0).eval(row),
            (Long) columns.apply(1).eval(row),
            (ArrayData) columns.apply(2).eval(row));
        return 3;
      case ROWS:
        writer.beginRow();
        return 0;
      case LINES:
        writer.beginLine((Integer) columns.apply(0).eval(row));
        return 1;
      default:
        writer.beginKeyed((ArrayData) columns.apply(0).eval(row));
        return 1;
    }
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String tap = context.addReferenceObj("headwaterTap", writer, TaskWriter.class.getName());
    int count = columns.length();
    ExprCode[] codes = new ExprCode[count];
    Block code = block("");
    for (int i = 0; i < count; i++) {
      codes[i] = columns.apply(i).genCode(context);
      code = code.$plus(codes[i].code());
    }
    StringBuilder calls = new StringBuilder("\n");
    int next = beginIn(calls, tap, codes);
    while (next < count) {
      if (isArray(next)) {
        calls.append(String.format("if (!%s) %s.tokens(%s);%n", codes[next].isNull(), tap, codes[next].value()));
        next += 1;
      } else {
        calls.append(
            String.format(
                "if (!%s) %s.token(%s, %s);%n",
                codes[next].isNull(), tap, codes[next].value(), codes[next + 1].value()));
        next += 2;
      }
    }
    return new ExprCode(code.$plus(block(calls.toString())), FalseLiteral$.MODULE$, TrueLiteral$.MODULE$);
  }

  private int beginIn(StringBuilder calls, String tap, ExprCode[] codes) {
    switch (writer.kind()) {
      case GROUP:
        calls.append(String.format("%s.beginGroup(%s, %s);%n", tap, codes[0].value(), codes[1].value()));
        return 2;
      case KEYED_INPUT:
        calls.append(
            String.format(
                "%s.keyedInput(%s, %s, %s);%n",
                tap, codes[0].value(), codes[1].value(), codes[2].value()));
        return 3;
      case ROWS:
        calls.append(String.format("%s.beginRow();%n", tap));
        return 0;
      case LINES:
        calls.append(String.format("%s.beginLine(%s);%n", tap, codes[0].value()));
        return 1;
      default:
        calls.append(String.format("%s.beginKeyed(%s);%n", tap, codes[0].value()));
        return 1;
    }
  }

  private boolean isArray(int index) {
    return columns.apply(index).dataType() instanceof ArrayType;
  }

  static Block block(String code) {
    return new CodeBlock(List$.MODULE$.<String>empty().$colon$colon(code), List$.MODULE$.empty());
  }

  @Override
  public String prettyName() {
    return "headwater_tap";
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new Tap(children.toSeq(), writer);
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int n) {
    return columns;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Tap;
  }

  // Two taps are never one, so that Spark does not share a result between them.
  @Override
  public boolean equals(Object other) {
    return this == other;
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(this);
  }
}
