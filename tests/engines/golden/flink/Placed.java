/*
 * Runs a Flink job with every operator on the device that streamplace chose.
 *
 * Either leave the job as it is and run it through this class, first argument its main class:
 *     flink run -c Placed job.jar my.MainClass ARGUMENTS      (this class compiled into job.jar)
 * or replace its last line, env.execute("name"), by
 *     env.execute(Placed.pin(env.getStreamGraph()));
 *
 * Operators are known by their names (name("...") in the job), or by their uids.
 * Check: streamplace flink verify --rest http://JOBMANAGER:8081 --placement placement.json
 */
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.resources.ExternalResource;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.runtime.clusterframework.types.ResourceProfile;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.streaming.api.graph.StreamNode;

public final class Placed extends StreamExecutionEnvironment {
    /** What every slot gets beside its share of the network buffers; raise it for state in memory. */
    private static final double CPU_CORES = 0.001;
    private static final int HEAP_MB = 1, MANAGED_MB = 1;

    private static final String CELL = "\u001f", ESCAPE = "\u001e";

    /** Operator, its group, its parallelism where subtasks are spread (else 0). */
    private static final String[] OPERATORS = {
        "clicks\u001fbox0\u001f0",
        "parse\u001fbox0\u001f0",
        "orders\u001fbox1\u001f0",
        "join\u001fbox1\u001f0",
        "score\u001fgpu\u001f0",
        "sink\u001fbox1\u001f0",
    };
    /** Group, then resources that each of its slots asks for, and how much of them. */
    private static final String[] GROUPS = {
        "box0\u001fdev-box0\u001f1",
        "box1\u001fdev-box1\u001f1",
        "gpu\u001fdev-gpu\u001f1",
    };

    private final StreamExecutionEnvironment cluster;

    private Placed(StreamExecutionEnvironment cluster, Configuration configuration) {
        super(configuration, Thread.currentThread().getContextClassLoader());
        this.cluster = cluster;
    }

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment cluster = getExecutionEnvironment();
        initializeContextEnvironment(
                own -> {
                    Configuration all = new Configuration();
                    all.addAll((Configuration) cluster.getConfiguration());
                    all.addAll(own);
                    return new Placed(cluster, all);
                });
        try {
            Class.forName(arguments[0], true, Thread.currentThread().getContextClassLoader())
                    .getMethod("main", String[].class)
                    .invoke(null, (Object) Arrays.copyOfRange(arguments, 1, arguments.length));
        } catch (InvocationTargetException failure) {
            if (failure.getCause() instanceof Error) {
                throw (Error) failure.getCause();
            }
            throw (Exception) failure.getCause();
        } finally {
            resetContextEnvironment();
        }
    }

    @Override
    public JobExecutionResult execute(StreamGraph graph) throws Exception {
        return cluster.execute(pin(graph));
    }

    @Override
    public JobClient executeAsync(StreamGraph graph) throws Exception {
        return cluster.executeAsync(pin(graph));
    }

    /** Puts every operator of a job into the slot sharing group of its device. */
    public static StreamGraph pin(StreamGraph graph) {
        Map<String, String[]> placed = new HashMap<>();
        for (String line : OPERATORS) {
            String[] cells = cells(line);
            placed.put(cells[0], cells);
        }
        List<String> faults = new ArrayList<>();
        for (StreamNode node : graph.getStreamNodes()) {
            String name = plain(node.getOperatorName());
            String[] place = placed.get(node.getTransformationUID());
            place = place != null ? place : placed.getOrDefault(name, placed.get(owner(name)));
            if (place == null) {
                faults.add("operator '" + name + "' is not placed");
            } else if (!place[2].equals("0") && node.getParallelism() != Integer.parseInt(place[2])) {
                faults.add("operator '" + name + "' has parallelism " + node.getParallelism()
                        + " but is placed for " + place[2]);
            } else {
                node.setSlotSharingGroup(place[1]);
            }
        }
        if (!faults.isEmpty()) {
            throw new IllegalArgumentException("streamplace: " + String.join("; ", faults));
        }
        graph.setSlotSharingGroupResource(resources());
        return graph;
    }

    /** Cells of a line, as they were before CELL and ESCAPE were escaped in them. */
    private static String[] cells(String line) {
        String[] cells = line.split(CELL, -1);
        for (int i = 0; i < cells.length; i++) {
            cells[i] = cells[i].replace(ESCAPE + "1", CELL).replace(ESCAPE + "0", ESCAPE);
        }
        return cells;
    }

    private static Map<String, ResourceProfile> resources() {
        Map<String, ResourceProfile> resources = new HashMap<>();
        for (String line : GROUPS) {
            String[] words = cells(line);
            ResourceProfile.Builder slot =
                    ResourceProfile.newBuilder()
                            .setCpuCores(CPU_CORES)
                            .setTaskHeapMemoryMB(HEAP_MB)
                            .setManagedMemoryMB(MANAGED_MB);
            for (int i = 1; i < words.length; i += 2) {
                double amount = Double.parseDouble(words[i + 1]);
                slot.setExtendedResource(new ExternalResource(words[i], amount));
            }
            resources.put(words[0], slot.build());
        }
        return resources;
    }

    /** Name as the job's author gave it. */
    private static String plain(String name) {
        return name.replaceFirst("^Source: ", "").replaceFirst("^Sink: ", "")
                .replaceFirst(": Writer$", "");
    }

    /** Sink that a committer or another helper belongs to. */
    private static String owner(String name) {
        return name.replaceFirst(": [A-Za-z -]+$", "");
    }
}
