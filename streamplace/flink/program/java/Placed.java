/*
 * Runs a Flink job with every operator on the device that streamplace chose.
 *
 * Either leave the job as it is and run it through this class, first argument its main class:
 *     flink run -c Placed job.jar my.MainClass ARGUMENTS
 * (this class and PlacedIds compiled into job.jar)
 * or replace its last line, env.execute("name"), by
 *     env.execute(Placed.pin(env.getStreamGraph()));
 *
 * Operators are known by their names (name("...") in the job), or by their uids; those of one name
 * are numbered, the second of them "Map (2)". Run through this class, those whose number of subtasks
 * the job leaves open get as many as they are placed with.
 * Check: streamplace flink verify --rest http://JOBMANAGER:8081 --placement placement.json
 */
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.resources.ExternalResource;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.memory.ManagedMemoryUseCase;
import org.apache.flink.runtime.clusterframework.types.ResourceProfile;
import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.StateBackendLoader;
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

    /** Setting: whether the job is only looked at, and not submitted. */
    private static final String CHECK = "streamplace.check";
    private static final String FITS = "streamplace: the job fits its placement";

    /** Settings that a check tells, so that none is lost in silence when a job is moved. */
    private static final String[] DURATIONS = {
        "execution.checkpointing.interval",
        "execution.checkpointing.timeout",
        "execution.checkpointing.min-pause",
        "execution.checkpointing.aligned-checkpoint-timeout",
        "restart-strategy.fixed-delay.delay",
        "restart-strategy.failure-rate.failure-rate-interval",
        "restart-strategy.failure-rate.delay",
        "restart-strategy.exponential-delay.initial-backoff",
        "restart-strategy.exponential-delay.max-backoff",
        "restart-strategy.exponential-delay.reset-backoff-threshold",
    };
    private static final String[] TEXTS = {
        "execution.checkpointing.dir",
        "execution.checkpointing.externalized-checkpoint-retention",
        "execution.checkpointing.max-concurrent-checkpoints",
        "execution.checkpointing.mode",
        "execution.checkpointing.tolerable-failed-checkpoints",
        "execution.checkpointing.unaligned.enabled",
        "pipeline.object-reuse",
        "restart-strategy.type",
        "restart-strategy.fixed-delay.attempts",
        "restart-strategy.failure-rate.max-failures-per-interval",
        "restart-strategy.exponential-delay.backoff-multiplier",
        "restart-strategy.exponential-delay.jitter-factor",
        "state.backend.type",
        "state.changelog.enabled",
    };

    private static final String TRANSACTION_TIMEOUT = "transaction.timeout.ms";

    private static final int MOST_FAULTS = 3;
    private static final String CELL = "\u001f", ESCAPE = "\u001e";

    /** Operator, its group, its number of subtasks (0 where it is not known). */
    private static final String[] OPERATORS = {
        // operators
    };
    /** Group, then resources that each of its slots asks for, and how much of them. */
    private static final String[] GROUPS = {
        // groups
    };
    /** Group that is spread, then its TaskManagers, and how many of its slots are on each. */
    private static final String[] SPREAD = {
        // spread
    };
    /** TaskManager, its managed memory in MB where it is not MANAGED_MB. */
    private static final String[] MANAGED = {
        // managed
    };

    private static final Map<String, String[]> PLACES = rows("operators", OPERATORS);

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
        setParallelism(transformations, () -> super.getStreamGraph(false));
        return super.getStreamGraph(clear);
    }

    @Override
    public StreamGraph generateStreamGraph(List<Transformation<?>> ends) {
        setParallelism(ends, () -> super.generateStreamGraph(ends));
        return super.generateStreamGraph(ends);
    }

    @Override
    public JobExecutionResult execute(StreamGraph graph) throws Exception {
        return executing().execute(checked(graph));
    }

    @Override
    public JobClient executeAsync(StreamGraph graph) throws Exception {
        return executing().executeAsync(checked(graph));
    }

    /** The environment that executes, with the listeners and the jars that the program has added. */
    private StreamExecutionEnvironment executing() {
        cluster.clearJobListeners();
        getJobListeners().forEach(cluster::registerJobListener);
        Configuration executed = (Configuration) cluster.getConfiguration();
        configuration.getOptional(PipelineOptions.JARS)
                .ifPresent(jars -> executed.set(PipelineOptions.JARS, jars));
        configuration.getOptional(PipelineOptions.CLASSPATHS)
                .ifPresent(paths -> executed.set(PipelineOptions.CLASSPATHS, paths));
        return cluster;
    }

    private StreamGraph checked(StreamGraph graph) throws IOException {
        boolean isCheck = configuration.toMap().containsKey(CHECK);
        StreamGraph pinned = pin(graph, isCheck);
        if (isCheck) {
            // An error, because programs that catch exceptions here would hide it, or end the process.
            throw new Error(FITS + " <" + settings(pinned) + ">");
        }
        return pinned;
    }

    /** What a job would go by, of what a running one may be asked: lines in Base64. */
    private String settings(StreamGraph graph) {
        Configuration all = new Configuration();
        all.addAll((Configuration) configuration);
        all.addAll(graph.getCheckpointConfig().toConfiguration());
        StringBuilder lines = new StringBuilder();
        for (String key : DURATIONS) {
            all.getOptional(ConfigOptions.key(key).durationType().noDefaultValue())
                    .ifPresent(d -> lines.append(key + "=" + d.toMillis() + " ms\n"));
        }
        for (String key : TEXTS) {
            all.getOptional(ConfigOptions.key(key).stringType().noDefaultValue())
                    .ifPresent(t -> lines.append(key + "=" + t.replace('\n', ' ') + "\n"));
        }
        lines.append("pipeline.name=" + graph.getJobName().replace('\n', ' ') + "\n");
        lines.append("pipeline.operator-chaining.enabled=" + graph.isChainingEnabled() + "\n");
        transactionTimeout(graph).ifPresent(ms -> lines.append(TRANSACTION_TIMEOUT + "=" + ms + "\n"));
        return Base64.getEncoder().encodeToString(lines.toString().getBytes(StandardCharsets.UTF_8));
    }

    /** Shortest time after which Kafka drops what a sink has not committed, if it is exact. */
    private static OptionalLong transactionTimeout(StreamGraph graph) {
        return graph.getStreamNodes().stream()
                .map(node -> field(node.getOperatorFactory(), "sink"))
                .filter(sink -> "exactly-once".equals(String.valueOf(field(sink, "deliveryGuarantee"))))
                .map(sink -> field(sink, "kafkaProducerConfig"))
                .filter(Properties.class::isInstance)
                .map(settings -> ((Properties) settings).get(TRANSACTION_TIMEOUT))
                .filter(Objects::nonNull)
                .mapToLong(milliseconds -> Long.parseLong(milliseconds.toString()))
                .min();
    }

    /** What an object has in a field; null if it has no such field. */
    private static Object field(Object owner, String name) {
        Class<?> type = owner == null ? null : owner.getClass();
        while (type != null) {
            try {
                Field field = type.getDeclaredField(name);
                field.setAccessible(true);
                return field.get(owner);
            } catch (ReflectiveOperationException | RuntimeException missing) {
                type = type.getSuperclass();
            }
        }
        return null;
    }

    /** Puts every operator of a job into the slot sharing group of its device. */
    public static StreamGraph pin(StreamGraph graph) throws IOException {
        return pin(graph, false);
    }

    private static StreamGraph pin(StreamGraph graph, boolean isCheck) throws IOException {
        refuse(devices(graph));
        Map<Integer, String> names = PlacedIds.names(graph);
        Map<String, StreamNode> bearers = new HashMap<>();
        List<String> faults = new ArrayList<>(), unplaced = new ArrayList<>();
        for (StreamNode node : graph.getStreamNodes()) {
            String name = names.get(node.getId()), uid = node.getTransformationUID();
            if (bearers.put(name, node) != null) {
                faults.add("two operators are called '" + name + "'; give each a name of its own");
            }
            String[] place = place(uid, name);
            if (place == null) {
                unplaced.add("'" + name + "'");
                continue;
            }
            boolean isHelper = !place[0].equals(name) && !place[0].equals(uid);
            int wanted = Integer.parseInt(place[2]), given = node.getParallelism();
            if (wanted > 0 && (isHelper ? given > wanted : given != wanted)) {
                faults.add("operator '" + name + "' has parallelism " + given
                        + " but is placed for " + wanted);
            }
            node.setSlotSharingGroup(place[1]);
        }
        if (!unplaced.isEmpty()) {
            String are = unplaced.size() == 1 ? " is not placed" : " are not placed";
            String operators = unplaced.size() == 1 ? "operator " : "operators ";
            faults.add(0, operators + String.join(", ", unplaced) + are);
        }
        Map<String, ResourceProfile> resources = faults.isEmpty() ? resources(graph, faults) : null;
        refuse(faults);
        graph.setSlotSharingGroupResource(resources);
        if (isCheck) {
            int lost = PlacedIds.lost(graph);
            refuse(lost == 0 ? List.of() : List.of("the running job has the state of "
                    + (lost == 1 ? "an operator" : lost + " operators") + " that the program does not "
                    + "have; give the jar and the arguments that it was submitted with, or drop that "
                    + "state (allow-non-restored in --settings)"));
            return graph;
        }
        PlacedIds.keep(graph);
        PlacedIds.show(graph, names);
        return graph;
    }

    /** Faults of groups of the program that ask for devices such as GPUs, which would be lost. */
    private static List<String> devices(StreamGraph graph) {
        Set<String> groups = new LinkedHashSet<>();
        graph.getStreamNodes().forEach(node -> groups.add(node.getSlotSharingGroup()));
        List<String> faults = new ArrayList<>();
        for (String group : groups) {
            Optional<ResourceProfile> own = graph.getSlotSharingGroupResource(group);
            Set<String> names = new TreeSet<>();
            own.filter(profile -> !profile.equals(ResourceProfile.UNKNOWN))
                    .ifPresent(profile -> names.addAll(profile.getExtendedResources().keySet()));
            names.removeIf(name -> name.startsWith("dev-") || name.startsWith("lim-"));
            if (!names.isEmpty()) {
                faults.add("slot sharing group '" + group + "' requests " + String.join(", ", names)
                        + ", which a placement does not preserve; remove that from the program");
            }
        }
        return faults;
    }

    /** Gives operators whose parallelism the job leaves open the one that they are placed with. */
    private static void setParallelism(List<Transformation<?>> ends, Supplier<StreamGraph> draft) {
        Set<Transformation<?>> open = new LinkedHashSet<>();
        ends.forEach(end -> open.addAll(end.getTransitivePredecessors()));
        open.removeIf(Transformation::isParallelismConfigured);
        if (open.isEmpty()) {
            return;
        }
        StreamGraph graph = draft.get();
        Map<Integer, String> names = PlacedIds.names(graph);
        for (Transformation<?> operator : open) {
            String own = PlacedIds.plain(operator.getName());
            int id = PlacedIds.nodeOf(operator, graph);
            String[] place = place(operator.getUid(), names.getOrDefault(id, own));
            if (place != null && !place[2].equals("0")) {
                operator.setParallelism(Integer.parseInt(place[2]), true);
            }
        }
    }

    /** Row of an operator, or of the sink that a helper such as a committer belongs to. */
    private static String[] place(String uid, String name) {
        String[] sink = PLACES.get(name.replaceFirst(": [A-Za-z -]+(?=( \\(\\d+\\))?$)", ""));
        String[] planned = PLACES.getOrDefault(name.replaceFirst("\\[\\d+\\]$", ""), sink);
        String[] known = PLACES.getOrDefault(name, planned);
        return uid == null ? known : PLACES.getOrDefault(uid, known);
    }

    private static void refuse(List<String> faults) {
        if (!faults.isEmpty()) {
            int more = faults.size() - MOST_FAULTS;
            throw new Error( // as above
                    "streamplace: "
                            + String.join("; ", faults.subList(0, Math.min(MOST_FAULTS, faults.size())))
                            + (more > 0 ? "; and " + more + " more" : ""));
        }
    }

    private static Map<String, ResourceProfile> resources(StreamGraph graph, List<String> faults) {
        Map<String, Integer> managed = managed(graph, faults);
        Map<String, ResourceProfile> resources = new HashMap<>();
        for (String[] words : rows("groups", GROUPS).values()) {
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
    private static Map<String, Integer> managed(StreamGraph graph, List<String> faults) {
        Map<String, Map<String, Integer>> slots = slots(graph);
        Map<String, Integer> crowd = new HashMap<>(), share = new HashMap<>();
        slots.values().forEach(c -> c.forEach((device, n) -> crowd.merge(device, n, Integer::sum)));
        Map<String, String[]> known = rows("managed", MANAGED);
        crowd.forEach((device, number) -> {
            String[] row = known.get(device);
            int all = row == null ? MANAGED_MB : Integer.parseInt(row[1]);
            if (all < number) {
                faults.add("TaskManager '" + device + "' has " + all + " MB of managed memory left "
                        + "for " + number + " slots that need it; end what else runs there, or "
                        + "place less on it");
            }
            slots.forEach((group, counts) -> {
                if (counts.containsKey(device)) {
                    share.merge(group, all / number, Math::min);
                }
            });
        });
        return share;
    }

    /** Group that uses managed memory, TaskManager, number of its slots there. */
    private static Map<String, Map<String, Integer>> slots(StreamGraph graph) {
        Map<String, Map<String, Integer>> slots = new HashMap<>();
        Set<String> users = new HashSet<>();
        Set<ManagedMemoryUseCase> unused = unusedByState(graph);
        for (StreamNode node : graph.getStreamNodes()) {
            String group = node.getSlotSharingGroup();
            slots.computeIfAbsent(group, g -> new HashMap<>())
                    .merge(group, node.getParallelism(), Math::max);
            if (!node.getManagedMemoryOperatorScopeUseCaseWeights().isEmpty()
                    || !unused.containsAll(node.getManagedMemorySlotScopeUseCases())) {
                users.add(group);
            }
        }
        for (String[] words : rows("spread", SPREAD).values()) {
            Map<String, Integer> counts = new HashMap<>();
            for (int i = 1; i < words.length; i += 2) {
                counts.put(words[i], Integer.parseInt(words[i + 1]));
            }
            slots.put(words[0], counts);
        }
        slots.keySet().retainAll(users);
        return slots;
    }

    /** Uses of managed memory that come to nothing: state, where it is kept on the heap. */
    private static Set<ManagedMemoryUseCase> unusedByState(StreamGraph graph) {
        Optional<Boolean> own =
                Optional.ofNullable(graph.getStateBackend()).map(StateBackend::useManagedMemory);
        return StateBackendLoader.stateBackendFromApplicationOrConfigOrDefaultUseManagedMemory(
                        graph.getJobConfiguration(), own, Placed.class.getClassLoader())
                ? Set.of()
                : Set.of(ManagedMemoryUseCase.STATE_BACKEND);
    }

    /** Rows by their first cells: of a table in the jar, such as placed/groups, else those given. */
    private static Map<String, String[]> rows(String table, String[] given) {
        Map<String, String[]> rows = new HashMap<>();
        for (String line : lines(table, given)) {
            String[] cells = cells(line);
            rows.put(cells[0], cells);
        }
        return rows;
    }

    private static String[] lines(String table, String[] given) {
        try (InputStream found = Placed.class.getResourceAsStream("/placed/" + table)) {
            if (found == null) {
                return given;
            }
            String text = new String(found.readAllBytes(), StandardCharsets.UTF_8);
            return text.isEmpty() ? new String[0] : text.split("\n");
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** Cells of a line, as they were before what separates them was escaped in them. */
    private static String[] cells(String line) {
        String[] cells = line.split(CELL, -1);
        for (int i = 0; i < cells.length; i++) {
            cells[i] =
                    cells[i].replace(ESCAPE + "2", "\n").replace(ESCAPE + "1", CELL)
                            .replace(ESCAPE + "0", ESCAPE);
        }
        return cells;
    }
}
