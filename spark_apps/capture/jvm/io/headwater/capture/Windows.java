package io.headwater.capture;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.internal.ColumnNode;
import org.apache.spark.sql.internal.ColumnNodeLike;
import org.apache.spark.sql.internal.UnresolvedFunction;
import org.apache.spark.sql.internal.Window;
import org.apache.spark.sql.internal.WindowFrame;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The window functions inside a column, as far as lineage needs to know them. */
public final class Windows {
  private Windows() {}

  /** Every window function in the column. */
  public static List<Window> in(Column column) {
    List<Window> found = new ArrayList<>();
    gather(column.node(), found);
    return found;
  }

  /** The function's name, or its text where it has none. */
  public static String function(Window window) {
    return window.windowFunction() instanceof UnresolvedFunction
        ? ((UnresolvedFunction) window.windowFunction()).functionName()
        : window.windowFunction().sql();
  }

  /** Whether the function was given more than a column and an offset, as `ignoreNulls` is. */
  public static int argumentCount(Window window) {
    return ((UnresolvedFunction) window.windowFunction()).arguments().length();
  }

  /** The columns that divide the rows. */
  public static List<Column> partitionColumns(Window window) {
    List<Column> columns = new ArrayList<>();
    for (ColumnNode node : CollectionConverters.asJava(window.windowSpec().partitionColumns())) {
      columns.add(new Column(node));
    }
    return columns;
  }

  /** Whether the frame ends on both sides before its partition does. */
  public static boolean isBounded(Window window) {
    if (window.windowSpec().frame().isEmpty()) {
      return false;
    }
    WindowFrame frame = window.windowSpec().frame().get();
    return !isUnbounded(frame.lower()) && !isUnbounded(frame.upper());
  }

  /** Another aggregate over the very same rows. */
  public static Column over(Column aggregate, Window window) {
    return new Column(new Window(aggregate.node(), window.windowSpec(), window.origin()));
  }

  /** The same offset function of another column. */
  public static Column offset(Column value, Window window) {
    UnresolvedFunction function = (UnresolvedFunction) window.windowFunction();
    List<ColumnNode> arguments = new ArrayList<>();
    arguments.add(value.node());
    if (function.arguments().length() > 1) {
      arguments.add(function.arguments().apply(1));
    }
    Seq<ColumnNode> seq = CollectionConverters.asScala(arguments).toSeq();
    UnresolvedFunction same =
        new UnresolvedFunction(
            function.functionName(), seq, false, false, false, function.origin());
    return new Column(new Window(same, window.windowSpec(), window.origin()));
  }

  /** What tells one window from another: its specification's text. */
  public static String describe(Window window) {
    return window.windowSpec().normalize().sql();
  }

  private static boolean isUnbounded(WindowFrame.FrameBoundary boundary) {
    return boundary == WindowFrame.UnboundedPreceding$.MODULE$ || boundary == WindowFrame.UnboundedFollowing$.MODULE$;
  }

  private static void gather(ColumnNodeLike node, List<Window> found) {
    if (node instanceof Window) {
      found.add((Window) node);
    }
    for (ColumnNodeLike child : CollectionConverters.asJava(node.children())) {
      gather(child, found);
    }
  }
}
