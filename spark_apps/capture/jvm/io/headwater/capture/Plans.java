package io.headwater.capture;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import scala.collection.Iterator;

/** Looks at the plans that Spark makes of a call, so that nothing unforeseen passes for a narrow operation. */
public final class Plans {
  private static final Set<String> NARROW = Set.of("Project", "Filter", "Generate", "SubqueryAlias");

  private Plans() {}

  /** The first thing between a frame and its base that is no narrow operation: its node's name, or empty. */
  public static String notNarrow(Dataset<?> made, Dataset<?> base, int windowsFollowed) {
    LogicalPlan bottom = analyzed(base);
    Deque<LogicalPlan> pending = new ArrayDeque<>();
    pending.add(analyzed(made));
    int windows = 0;
    while (!pending.isEmpty()) {
      LogicalPlan plan = pending.pop();
      if (plan.fastEquals(bottom)) {
        continue;
      }
      String name = plan.nodeName();
      if (plan instanceof Window) {
        windows += ((Window) plan).windowExpressions().length();
      } else if (!NARROW.contains(name)) {
        return name;
      }
      for (Iterator<Expression> each = plan.expressions().iterator(); each.hasNext(); ) {
        if (hasSubquery(each.next())) {
          return "Subquery";
        }
      }
      for (Iterator<LogicalPlan> each = plan.children().iterator(); each.hasNext(); ) {
        pending.push(each.next());
      }
    }
    return windows > windowsFollowed ? "Window" : "";
  }

  private static LogicalPlan analyzed(Dataset<?> frame) {
    return ((org.apache.spark.sql.classic.Dataset<?>) frame).queryExecution().analyzed();
  }

  private static boolean hasSubquery(Expression expression) {
    if (expression instanceof PlanExpression) {
      return true;
    }
    for (Iterator<Expression> each = expression.children().iterator(); each.hasNext(); ) {
      if (hasSubquery(each.next())) {
        return true;
      }
    }
    return false;
  }
}
