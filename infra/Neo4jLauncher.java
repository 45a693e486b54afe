import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.neo4j.cli.ExecutionContext;
import org.neo4j.commandline.admin.security.SetInitialPasswordCommand;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;
import picocli.CommandLine;

/**
 * Neo4j Community with its Bolt server, in one process: {@code java -cp 'lib/*' Neo4jLauncher.java HOME}.
 *
 * <p>HOME holds {@code conf/neo4j.conf}. The password of the user neo4j is read from standard input, so that it stands
 * neither on a command line nor in the environment.
 */
public final class Neo4jLauncher {
    private static final String SET_PASSWORD = "CREATE OR REPLACE USER neo4j SET PLAINTEXT PASSWORD $password CHANGE NOT REQUIRED";

    private Neo4jLauncher() {}

    public static void main(String[] arguments) throws Exception {
        Path home = Path.of(arguments[0]);
        Path configuration = home.resolve("conf");
        String password = new String(System.in.readAllBytes(), StandardCharsets.UTF_8).strip();

        // Before the first start: Bolt must not be open for a moment with the well-known default password.
        if (!Files.exists(home.resolve("data/databases/system"))) {
            setInitialPassword(home, configuration, password);
        }
        DatabaseManagementService server = new DatabaseManagementServiceBuilder(home)
                .loadPropertiesFromFile(configuration.resolve("neo4j.conf"))
                .build();
        CountDownLatch stopped = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            server.shutdown();
            stopped.countDown();
        }));
        // At every start: the secret may have been replaced while the store was kept.
        server.database(GraphDatabaseSettings.SYSTEM_DATABASE_NAME)
                .executeTransactionally(SET_PASSWORD, Map.of("password", password));
        stopped.await();
    }

    private static void setInitialPassword(Path home, Path configuration, String password) throws IOException {
        Files.deleteIfExists(home.resolve("data/dbms/auth.ini"));
        var command = new SetInitialPasswordCommand(new ExecutionContext(home, configuration));
        new CommandLine(command).parseArgs("--", password);
        command.execute();
    }
}
