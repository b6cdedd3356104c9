/*
 * Runs a Flink job with every operator on the device that streamplace chose.
 *
 * Either leave the job as it is and run it through this class, first argument its main class:
 *     flink run -c Placed job.jar my.MainClass ARGUMENTS      (this class compiled into job.jar)
 * or replace its last line, env.execute("name"), by
 *     env.execute(Placed.pin(env.getStreamGraph()));
 *
 * Operators are known by their names (name("...") in the job), or by their uids. Run through this
 * class, those whose number of subtasks the job leaves open get as many as they are placed with.
 * Check: streamplace flink verify --rest http://JOBMANAGER:8081 --placement placement.json
 */
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.resources.ExternalResource;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.runtime.clusterframework.types.ResourceProfile;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.streaming.api.graph.StreamNode;

public final class Placed extends StreamExecutionEnvironment {
    /**
     * Managed memory of a TaskManager in MB (taskmanager.memory.managed.size; Flink's default
     * configuration comes to 512): state in RocksDB, SQL and Python live there. The slots that are
     * placed on a TaskManager share it.
     */
    private static final int MANAGED_MB = 64;

    /** What every slot gets beside its shares of managed memory and of the network buffers. */
    private static final double CPU_CORES = 0.001;
    private static final int HEAP_MB = 1;

    private static final int MOST_FAULTS = 3;
    private static final String CELL = "\u001f", ESCAPE = "\u001e";

    /** Operator, its group, its number of subtasks (0 where it is not known). */
    private static final String[] OPERATORS = {
        "clicks\u001fbox0\u001f1",
        "parse\u001fbox0\u001f1",
        "orders\u001fbox1\u001f1",
        "join\u001fbox1\u001f2",
        "score\u001fgpu\u001f1",
        "sink\u001fbox1\u001f1",
    };
    /** Group, then resources that each of its slots asks for, and how much of them. */
    private static final String[] GROUPS = {
        "box0\u001fdev-box0\u001f1",
        "box1\u001fdev-box1\u001f1",
        "gpu\u001fdev-gpu\u001f1",
    };
    /** Group that is spread, then its TaskManagers, and how many of its slots are on each. */
    private static final String[] SPREAD = {
    };
    /** TaskManager, its managed memory in MB where it is not MANAGED_MB. */
    private static final String[] MANAGED = {
    };

    private static final Map<String, String[]> PLACES = rows(OPERATORS);

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
    public StreamGraph getStreamGraph(boolean clear) {
        setParallelism(transformations);
        return super.getStreamGraph(clear);
    }

    @Override
    public StreamGraph generateStreamGraph(List<Transformation<?>> ends) {
        setParallelism(ends);
        return super.generateStreamGraph(ends);
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
        Map<String, Integer> bearers = new LinkedHashMap<>();
        List<String> faults = new ArrayList<>();
        for (StreamNode node : graph.getStreamNodes()) {
            String name = plain(node.getOperatorName()), uid = node.getTransformationUID();
            String[] place = place(uid, name);
            if (place == null) {
                faults.add("operator '" + name + "' is not placed");
                continue;
            }
            boolean isHelper = !place[0].equals(name) && !place[0].equals(uid);
            int wanted = Integer.parseInt(place[2]), given = node.getParallelism();
            if (wanted > 0 && (isHelper ? given > wanted : given != wanted)) {
                faults.add("operator '" + name + "' has parallelism " + given
                        + " but is placed for " + wanted);
            }
            if (place[0].equals(name) && !name.equals(uid)) {
                bearers.merge(name, 1, Integer::sum);
            }
            node.setSlotSharingGroup(place[1]);
        }
        bearers.forEach((name, number) -> {
            if (number > 1) {
                faults.add(0, number + " operators are called '" + name
                        + "', so they cannot be placed apart; give each a name of its own");
            }
        });
        refuse(faults);
        graph.setSlotSharingGroupResource(resources(graph));
        return graph;
    }

    /** Gives operators whose parallelism the job leaves open the one that they are placed with. */
    private static void setParallelism(List<Transformation<?>> ends) {
        for (Transformation<?> end : ends) {
            for (Transformation<?> operator : end.getTransitivePredecessors()) {
                String[] place = place(operator.getUid(), plain(operator.getName()));
                if (place != null && !place[2].equals("0") && !operator.isParallelismConfigured()) {
                    operator.setParallelism(Integer.parseInt(place[2]), true);
                }
            }
        }
    }

    /** Row of an operator, or of the sink that a helper such as a committer belongs to. */
    private static String[] place(String uid, String name) {
        String[] owner = PLACES.get(name.replaceFirst(": [A-Za-z -]+$", ""));
        String[] known = PLACES.getOrDefault(name, owner);
        return uid == null ? known : PLACES.getOrDefault(uid, known);
    }

    private static void refuse(List<String> faults) {
        if (!faults.isEmpty()) {
            int more = faults.size() - MOST_FAULTS;
            throw new IllegalArgumentException(
                    "streamplace: "
                            + String.join("; ", faults.subList(0, Math.min(MOST_FAULTS, faults.size())))
                            + (more > 0 ? "; and " + more + " more" : ""));
        }
    }

    private static Map<String, ResourceProfile> resources(StreamGraph graph) {
        Map<String, Integer> managed = managed(graph);
        Map<String, ResourceProfile> resources = new HashMap<>();
        for (String[] words : rows(GROUPS).values()) {
            ResourceProfile.Builder slot =
                    ResourceProfile.newBuilder()
                            .setCpuCores(CPU_CORES)
                            .setTaskHeapMemoryMB(HEAP_MB)
                            .setManagedMemoryMB(managed.getOrDefault(words[0], 0));
            for (int i = 1; i < words.length; i += 2) {
                double amount = Double.parseDouble(words[i + 1]);
                slot.setExtendedResource(new ExternalResource(words[i], amount));
            }
            resources.put(words[0], slot.build());
        }
        return resources;
    }

    /** Managed memory of each slot in MB, of the groups that use any: equal shares. */
    private static Map<String, Integer> managed(StreamGraph graph) {
        Map<String, Map<String, Integer>> slots = slots(graph);
        Map<String, Integer> crowd = new HashMap<>(), share = new HashMap<>();
        slots.values().forEach(c -> c.forEach((device, n) -> crowd.merge(device, n, Integer::sum)));
        Map<String, String[]> known = rows(MANAGED);
        slots.forEach((group, counts) -> counts.keySet().forEach(device -> {
            String[] row = known.get(device);
            int all = row == null ? MANAGED_MB : Integer.parseInt(row[1]);
            share.merge(group, all / crowd.get(device), Math::min);
        }));
        return share;
    }

    /** Group that uses managed memory, TaskManager, number of its slots there. */
    private static Map<String, Map<String, Integer>> slots(StreamGraph graph) {
        Map<String, Map<String, Integer>> slots = new HashMap<>();
        Set<String> users = new HashSet<>();
        for (StreamNode node : graph.getStreamNodes()) {
            String group = node.getSlotSharingGroup();
            slots.computeIfAbsent(group, g -> new HashMap<>())
                    .merge(group, node.getParallelism(), Math::max);
            if (!node.getManagedMemoryOperatorScopeUseCaseWeights().isEmpty()
                    || !node.getManagedMemorySlotScopeUseCases().isEmpty()) {
                users.add(group);
            }
        }
        for (String[] words : rows(SPREAD).values()) {
            Map<String, Integer> counts = new HashMap<>();
            for (int i = 1; i < words.length; i += 2) {
                counts.put(words[i], Integer.parseInt(words[i + 1]));
            }
            slots.put(words[0], counts);
        }
        slots.keySet().retainAll(users);
        return slots;
    }

    private static Map<String, String[]> rows(String[] lines) {
        Map<String, String[]> rows = new HashMap<>();
        for (String line : lines) {
            String[] cells = cells(line);
            rows.put(cells[0], cells);
        }
        return rows;
    }

    /** Cells of a line, as they were before CELL and ESCAPE were escaped in them. */
    private static String[] cells(String line) {
        String[] cells = line.split(CELL, -1);
        for (int i = 0; i < cells.length; i++) {
            cells[i] = cells[i].replace(ESCAPE + "1", CELL).replace(ESCAPE + "0", ESCAPE);
        }
        return cells;
    }

    /** Name as the job's author gave it. */
    private static String plain(String name) {
        return name.replaceFirst("^Source: ", "").replaceFirst("^Sink: ", "")
                .replaceFirst(": Writer$", "");
    }
}
