package io.headwater.graph;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.neo4j.graphdb.Node;
import org.neo4j.graphdb.Relationship;
import org.neo4j.graphdb.RelationshipType;
import org.neo4j.procedure.Description;
import org.neo4j.procedure.Mode;
import org.neo4j.procedure.Name;
import org.neo4j.procedure.Procedure;

/**
 * Makes the derivations of a batch, as {@code merge_batch.cypher} does, without an interpreter for each of them.
 *
 * <p>It uses nothing but Neo4j's public interface, so the jar also serves a Neo4j that someone else runs: put it into
 * its folder {@code plugins}.
 */
public final class Derivations {
    private static final RelationshipType DERIVED = RelationshipType.withName("WAS_DERIVED_FROM");

    /** The numbers of the relationships that were made, in their order. */
    public static final class Made {
        public final List<Long> relationships;

        private Made(List<Long> relationships) {
            this.relationships = relationships;
        }
    }

    @Procedure(name = "headwater.derive", mode = Mode.WRITE)
    @Description("Makes derivations between records, each end of which is a place in the list of records.")
    public Stream<Made> derive(
            @Name("records") List<Node> records,
            @Name("outputs") List<Long> outputs,
            @Name("inputs") List<Long> inputs,
            @Name("run") String run,
            @Name("revision") long revision) {
        List<Long> made = new ArrayList<>(outputs.size());
        for (int i = 0; i < outputs.size(); i++) {
            Node output = records.get(outputs.get(i).intValue());
            Node input = records.get(inputs.get(i).intValue());
            Relationship derivation = output.createRelationshipTo(input, DERIVED);
            derivation.setProperty("run", run);
            derivation.setProperty("revision", revision);
            made.add(number(derivation));
        }
        return Stream.of(new Made(made));
    }

    // By this number, not by the element's id, batches list their relationships for as long as lake graphs have them.
    @SuppressWarnings({"deprecation", "removal"})
    private static Long number(Relationship derivation) {
        return derivation.getId();
    }
}
