package io.headwater.capture;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.FalseLiteral$;
import org.apache.spark.sql.catalyst.expressions.codegen.JavaCode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * The token of a file's address: a hash of it that is not negative.
 *
 * <p>All rows of a batch share one address object, so it is hashed once a batch and not once a row.
 */
public final class FileToken extends Expression implements java.io.Serializable {
  private static final long serialVersionUID = 1L;
  private static final long SEED = 42;

  private final Seq<Expression> address;
  private final Memory memory = new Memory();

  FileToken(Seq<Expression> address) {
    this.address = address;
  }

  /** The token of an address, as the driver makes it too. */
  public static long of(UTF8String address) {
    return XXH64.hashUTF8String(address, SEED) & Long.MAX_VALUE;
  }

  /** Remembers the last address by its object, because comparing texts would cost what hashing costs. */
  public static final class Memory implements java.io.Serializable {
    private static final long serialVersionUID = 1L;
    private transient UTF8String last;
    private transient long token;

    public long of(UTF8String address) {
      if (address != last) {
        token = FileToken.of(address);
        last = address;
      }
      return token;
    }
  }

  @Override
  public boolean nullable() {
    return false;
  }

  @Override
  public DataType dataType() {
    return DataTypes.LongType;
  }

  @Override
  public Seq<Expression> children() {
    return address;
  }

  @Override
  public Object eval(InternalRow row) {
    return of((UTF8String) address.apply(0).eval(row));
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String remembered = context.addReferenceObj("headwaterFiles", memory, Memory.class.getCanonicalName());
    ExprCode child = address.apply(0).genCode(context);
    String value = context.freshName("fileToken");
    String call = String.format("%nlong %s = %s.of(%s);%n", value, remembered, child.value());
    return new ExprCode(
        child.code().$plus(Tap.block(call)), FalseLiteral$.MODULE$, JavaCode.variable(value, DataTypes.LongType));
  }

  @Override
  public String prettyName() {
    return "headwater_file";
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return new FileToken(children.toSeq());
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int n) {
    return address;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof FileToken;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof FileToken && ((FileToken) other).address.equals(address);
  }

  @Override
  public int hashCode() {
    return address.hashCode();
  }
}
