package io.headwater.capture;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.Dataset;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Finds where taking a record away could make outputs that were not there: provenance cannot show those.
 *
 * <p>Whatever an aggregate or a window function computed changes when one of its records goes. As long as it is only
 * carried along, the outputs change but stay the same records. Where it decides (a filter, a join's condition, a
 * grouping's key, duplicates dropped by it, rows made from it), others may appear.
 */
public final class Marks {
  private final Set<Long> computed = new HashSet<>();
  private final TreeSet<String> found = new TreeSet<>();

  private Marks() {}

  /** The marks of a frame's plan. */
  public static List<String> of(Dataset<?> frame) {
    Marks marks = new Marks();
    marks.walk(((org.apache.spark.sql.classic.Dataset<?>) frame).queryExecution().analyzed());
    return new ArrayList<>(marks.found);
  }

  private void walk(LogicalPlan plan) {
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      walk(child);
    }
    if (plan instanceof Filter && !(((Filter) plan).condition() instanceof Tap)) {
      decide(((Filter) plan).condition(), "filter on an aggregate");
    } else if (plan instanceof Join) {
      Join join = (Join) plan;
      if (join.condition().isDefined()) {
        decide(join.condition().get(), "join on an aggregate");
      }
      if (join.joinType() == LeftAnti$.MODULE$) {
        found.add("anti join");
      }
    } else if (plan instanceof Aggregate) {
      aggregate((Aggregate) plan);
    } else if (plan instanceof Window) {
      window((Window) plan);
    } else if (plan instanceof Project) {
      for (NamedExpression made : CollectionConverters.asJava(((Project) plan).projectList())) {
        carry((Expression) made, made);
      }
    } else if (plan instanceof Generate) {
      decide((Expression) ((Generate) plan).generator(), "explode of an aggregate");
    } else if (plan instanceof Deduplicate) {
      for (Attribute key : CollectionConverters.asJava(((Deduplicate) plan).keys())) {
        decide(key, "distinct of an aggregate");
      }
      deduplicate((Deduplicate) plan);
    } else if (plan instanceof Distinct) {
      for (Attribute key : CollectionConverters.asJava(plan.output())) {
        decide(key, "distinct of an aggregate");
      }
    } else if (plan instanceof Union) {
      union((Union) plan);
    }
  }

  private void aggregate(Aggregate plan) {
    for (Expression key : CollectionConverters.asJava(plan.groupingExpressions())) {
      decide(key, "groupBy an aggregate");
    }
    for (NamedExpression made : CollectionConverters.asJava(plan.aggregateExpressions())) {
      if (holdsAggregate((Expression) made)) {
        computed.add(made.exprId().id());
      }
      carry((Expression) made, made);
    }
  }

  private void window(Window plan) {
    List<Expression> keys = new ArrayList<>(CollectionConverters.asJava(plan.partitionSpec()));
    for (Expression key : keys) {
      decide(key, "window over an aggregate");
    }
    for (NamedExpression made : CollectionConverters.asJava(plan.windowExpressions())) {
      computed.add(made.exprId().id());
    }
  }

  /** Which of the rows stays is anyone's choice, so all but the key may change with the group. */
  private void deduplicate(Deduplicate plan) {
    Set<Long> keys = new HashSet<>();
    for (Attribute key : CollectionConverters.asJava(plan.keys())) {
      keys.add(key.exprId().id());
    }
    for (Attribute column : CollectionConverters.asJava(plan.output())) {
      if (!keys.contains(column.exprId().id())) {
        computed.add(column.exprId().id());
      }
    }
  }

  private void union(Union plan) {
    List<Attribute> made = CollectionConverters.asJava(plan.output());
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) {
      List<Attribute> given = CollectionConverters.asJava(child.output());
      for (int place = 0; place < made.size(); place++) {
        if (computed.contains(given.get(place).exprId().id())) {
          computed.add(made.get(place).exprId().id());
        }
      }
    }
  }

  private void carry(Expression from, NamedExpression to) {
    if (usesComputed(from)) {
      computed.add(to.exprId().id());
    }
  }

  private void decide(Expression by, String mark) {
    if (usesComputed(by)) {
      found.add(mark);
    }
  }

  private boolean usesComputed(Expression expression) {
    if (expression instanceof Attribute && computed.contains(((Attribute) expression).exprId().id())) {
      return true;
    }
    for (Expression child : CollectionConverters.asJava(expression.children())) {
      if (usesComputed(child)) {
        return true;
      }
    }
    return false;
  }

  private static boolean holdsAggregate(Expression expression) {
    if (expression instanceof AggregateExpression) {
      return true;
    }
    for (Expression child : CollectionConverters.asJava(expression.children())) {
      if (holdsAggregate(child)) {
        return true;
      }
    }
    return false;
  }
}
