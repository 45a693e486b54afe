package io.headwater.graph;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.eclipse.collections.api.map.primitive.IntObjectMap;
import org.eclipse.collections.impl.factory.primitive.IntObjectMaps;
import org.neo4j.exceptions.KernelException;
import org.neo4j.graphdb.Node;
import org.neo4j.internal.kernel.api.TokenWrite;
import org.neo4j.internal.kernel.api.Write;
import org.neo4j.kernel.api.KernelTransaction;
import org.neo4j.procedure.Context;
import org.neo4j.procedure.Description;
import org.neo4j.procedure.Mode;
import org.neo4j.procedure.Name;
import org.neo4j.procedure.Procedure;
import org.neo4j.values.storable.Value;
import org.neo4j.values.storable.Values;

/**
 * Makes the derivations of a batch, as {@code merge_batch.cypher} does, without an interpreter for each of them.
 *
 * <p>It writes as the interpreter itself writes, so errors have the same codes, by which a merge knows what to try again.
 * Neo4j lets only procedures that are named in {@code dbms.security.procedures.unrestricted} do so.
 */
public final class Derivations {
    @Context
    public KernelTransaction transaction;

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
            @Name("revision") long revision)
            throws KernelException {
        TokenWrite tokens = transaction.tokenWrite();
        int type = tokens.relationshipTypeGetOrCreateForName("WAS_DERIVED_FROM");
        IntObjectMap<Value> properties = IntObjectMaps.mutable.of(
                tokens.propertyKeyGetOrCreateForName("run"), Values.stringValue(run),
                tokens.propertyKeyGetOrCreateForName("revision"), Values.longValue(revision));
        long[] nodes = numbers(records);
        Write write = transaction.dataWrite();
        List<Long> made = new ArrayList<>(outputs.size());
        for (int i = 0; i < outputs.size(); i++) {
            long output = nodes[outputs.get(i).intValue()];
            long input = nodes[inputs.get(i).intValue()];
            long derivation = write.relationshipCreate(output, type, input);
            write.relationshipApplyChanges(derivation, properties);
            made.add(derivation);
        }
        return Stream.of(new Made(made));
    }

    // What is asked of Neo4j below its public interface goes by numbers; batches list their relationships by them too.
    @SuppressWarnings({"deprecation", "removal"})
    private static long[] numbers(List<Node> records) {
        return records.stream().mapToLong(Node::getId).toArray();
    }
}
