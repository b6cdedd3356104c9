/*
 * Tells the operators of a job apart for streamplace, and keeps the ids that their state is under.
 *
 * Flink knows an operator without a uid by a hash: of its position in the stream graph, of how many
 * of its outputs are chained, and of the ids of its inputs. Placing cuts and joins chains. So the
 * ids in a savepoint are searched among what any chaining would give, and each operator gets a uid
 * whose hash is the id that it had. (A user-provided hash would not do: coordinators of sources
 * are not restored by it, and the next savepoint would not hold it.)
 */
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.state.filesystem.AbstractFsCheckpointStorageAccess;
import org.apache.flink.streaming.api.graph.StreamEdge;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.streaming.api.graph.StreamNode;
import org.apache.flink.streaming.api.operators.ChainingStrategy;
import org.apache.flink.streaming.api.operators.StreamOperatorFactory;
import org.apache.flink.util.StringUtils;

final class PlacedIds {
    /** Name, number of the SQL planner, and what a helper of a sink is called besides. */
    private static final Pattern PLANNED =
            Pattern.compile("(.*)\\[(\\d{1,8})\\](: [A-Za-z -]+)?", Pattern.DOTALL);
    private static final long C1 = 0x87c37b91114253d5L, C2 = 0x4cf5ad432745937fL;
    private static final long D1 = 0x52dce729L, D2 = 0x38495ab5L;
    private static final long F1 = 0xff51afd7ed558ccdL, F2 = 0xc4ceb9fe1a85ec53L;
    private static final int UID_BYTES = 32;

    private PlacedIds() {}

    /**
     * Names by the ids of stream nodes: without the numbers that the SQL planner gives, for they
     * differ with every submission; namesakes are numbered, as they follow one another.
     */
    static Map<Integer, String> names(StreamGraph graph) {
        Map<String, List<StreamNode>> bearers = new LinkedHashMap<>();
        for (StreamNode node : inOrder(graph)) {
            bearers.computeIfAbsent(stem(node), s -> new ArrayList<>()).add(node);
        }
        Map<Integer, String> names = new HashMap<>();
        bearers.forEach((stem, nodes) -> {
            nodes.sort(Comparator.comparingInt(PlacedIds::plannerNumber));
            for (int i = 0; i < nodes.size(); i++) {
                names.put(nodes.get(i).getId(), i == 0 ? stem : stem + " (" + (i + 1) + ")");
            }
        });
        return names;
    }

    /** Stream node that an operator becomes; a sink becomes several, of which it is the writer. */
    static int nodeOf(Transformation<?> operator, StreamGraph graph) {
        if (graph.getStreamNode(operator.getId()) != null) {
            return operator.getId();
        }
        Set<Integer> inputs = new HashSet<>();
        operator.getInputs().forEach(input -> inputs.add(nodeOf(input, graph)));
        for (StreamNode node : graph.getStreamNodes()) {
            if (node.getOperatorName().equals(operator.getName() + ": Writer")
                    && node.getInEdges().stream().anyMatch(e -> inputs.contains(e.getSourceId()))) {
                return node.getId();
            }
        }
        return inputs.size() == 1 ? inputs.iterator().next() : -1; // it only says how tuples go
    }

    /** Has the plan that Flink shows of the job tell namesakes apart, too. */
    static void show(StreamGraph graph, Map<Integer, String> names) {
        for (StreamNode node : graph.getStreamNodes()) {
            String number = names.get(node.getId()).substring(stem(node).length());
            if (!number.isEmpty()) {
                node.setOperatorDescription(
                        node.getOperatorDescription() + number.replace("(", "[namesake ").replace(')', ']'));
            }
        }
    }

    /** Name as the job's author gave it. */
    static String plain(String name) {
        return name.replaceFirst("^Source: ", "").replaceFirst("^Sink: ", "")
                .replaceFirst(": Writer$", "");
    }

    private static String stem(StreamNode node) {
        Matcher match = planned(node);
        if (match == null) {
            return plain(node.getOperatorName());
        }
        return match.group(1) + (match.group(3) == null ? "" : match.group(3));
    }

    /** Number that the SQL planner has given to an operator; 0 where it is not the planner's. */
    private static int plannerNumber(StreamNode node) {
        Matcher match = planned(node);
        return match == null ? 0 : Integer.parseInt(match.group(2));
    }

    private static Matcher planned(StreamNode node) {
        Matcher match = PLANNED.matcher(plain(node.getOperatorName()));
        boolean isPlanned =
                match.matches()
                        && node.getOperatorDescription().contains("[" + match.group(2) + "]:");
        return isPlanned ? match : null;
    }

    /** Gives every operator that is in the savepoint which the job starts from the id it has there. */
    static void keep(StreamGraph graph) throws IOException {
        SavepointRestoreSettings restored = graph.getSavepointRestoreSettings();
        if (restored == null || !restored.restoreSavepoint()) {
            return;
        }
        Map<ByteBuffer, OperatorState> saved = saved(restored.getRestorePath());
        List<StreamNode> nodes = inOrder(graph);
        Map<Integer, byte[]> ids = ids(nodes, saved.keySet());
        for (StreamNode node : nodes) {
            if (node.getTransformationUID() == null && ids.containsKey(node.getId())) {
                graph.setTransformationUID(node.getId(), uid(ids.get(node.getId())));
            }
        }
        keepMaxParallelism(graph, nodes, ids, saved);
    }

    /** Number of operators whose state is in the savepoint, and that the job does not have. */
    static int lost(StreamGraph graph) {
        SavepointRestoreSettings restored = graph.getSavepointRestoreSettings();
        if (restored == null || !restored.restoreSavepoint() || restored.allowNonRestoredState()) {
            return 0;
        }
        Map<ByteBuffer, OperatorState> saved;
        try {
            saved = saved(restored.getRestorePath());
        } catch (IOException gone) {
            return 0; // a checkpoint that a later one has replaced
        }
        List<StreamNode> nodes = inOrder(graph);
        Set<ByteBuffer> known = new HashSet<>();
        ids(nodes, saved.keySet()).values().forEach(id -> known.add(ByteBuffer.wrap(id)));
        for (StreamNode node : nodes) {
            if (node.getUserHash() != null) {
                known.add(ByteBuffer.wrap(StringUtils.hexStringToByte(node.getUserHash())));
            }
        }
        int lost = 0;
        for (Map.Entry<ByteBuffer, OperatorState> entry : saved.entrySet()) {
            OperatorState state = entry.getValue();
            boolean isEmpty = state.getCoordinatorState() == null
                    && state.getStates().stream().noneMatch(OperatorSubtaskState::hasState);
            lost += isEmpty || known.contains(entry.getKey()) ? 0 : 1;
        }
        return lost;
    }

    /** Ids in a savepoint by stream nodes, of the operators that are there. */
    private static Map<Integer, byte[]> ids(List<StreamNode> nodes, Set<ByteBuffer> saved) {
        Map<Integer, byte[]> ids = new HashMap<>();
        for (int position = 0; position < nodes.size(); position++) {
            byte[] id = id(nodes.get(position), position, ids, saved);
            if (id != null) {
                ids.put(nodes.get(position).getId(), id);
            }
        }
        return ids;
    }

    /**
     * Gives every operator the maximum parallelism that its state was saved with. In a chain that is
     * its head's, whatever the operator's own; so operators of different ones are not chained.
     */
    private static void keepMaxParallelism(
            StreamGraph graph,
            List<StreamNode> nodes,
            Map<Integer, byte[]> ids,
            Map<ByteBuffer, OperatorState> saved) {
        Map<Integer, Integer> most = new HashMap<>();
        for (StreamNode node : nodes) {
            byte[] id = ids.get(node.getId());
            OperatorState state = id == null ? null : saved.get(ByteBuffer.wrap(id));
            int recorded = state == null ? 0 : state.getMaxParallelism();
            if (recorded > 0) {
                graph.setMaxParallelism(node.getId(), recorded);
                most.put(node.getId(), recorded);
            }
        }
        for (StreamNode node : nodes) {
            StreamOperatorFactory<?> factory = node.getOperatorFactory();
            boolean isChained =
                    factory != null && factory.getChainingStrategy() == ChainingStrategy.ALWAYS;
            Integer own = most.get(node.getId());
            boolean differs = own != null && node.getInEdges().stream()
                    .map(edge -> most.get(edge.getSourceId()))
                    .anyMatch(other -> other != null && !other.equals(own));
            if (isChained && differs) {
                factory.setChainingStrategy(ChainingStrategy.HEAD);
            }
        }
    }

    /** State of the operators in a savepoint, by their ids. */
    private static Map<ByteBuffer, OperatorState> saved(String path) throws IOException {
        Map<ByteBuffer, OperatorState> states = new HashMap<>();
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        try (DataInputStream metadata =
                new DataInputStream(
                        AbstractFsCheckpointStorageAccess.resolveCheckpointPointer(path)
                                .getMetadataHandle()
                                .openInputStream())) {
            Checkpoints.loadCheckpointMetadata(metadata, loader, path)
                    .getOperatorStates()
                    .forEach(one -> states.put(ByteBuffer.wrap(one.getOperatorID().getBytes()), one));
        }
        return states;
    }

    /** Id of an operator in a savepoint, whatever was chained to it; null where it is not there. */
    private static byte[] id(
            StreamNode node, int position, Map<Integer, byte[]> ids, Set<ByteBuffer> saved) {
        if (node.getTransformationUID() != null) {
            return hash(node.getTransformationUID().getBytes(StandardCharsets.UTF_8));
        }
        for (int chained = 0; chained <= node.getOutEdges().size(); chained++) {
            ByteBuffer own = ByteBuffer.allocate(4 * (chained + 1)).order(ByteOrder.LITTLE_ENDIAN);
            while (own.hasRemaining()) {
                own.putInt(position);
            }
            byte[] id = hash(own.array());
            for (StreamEdge edge : node.getInEdges()) {
                byte[] input = ids.get(edge.getSourceId());
                if (input == null) {
                    return null;
                }
                for (int i = 0; i < id.length; i++) {
                    id[i] = (byte) (id[i] * 37 ^ input[i]);
                }
            }
            if (saved.contains(ByteBuffer.wrap(id))) {
                return id;
            }
        }
        return null;
    }

    /** Operators in the order in which Flink hashes them: breadth first, and after their inputs. */
    private static List<StreamNode> inOrder(StreamGraph graph) {
        Set<Integer> seen = new HashSet<>(graph.getSourceIDs()), done = new HashSet<>();
        Queue<StreamNode> waiting = new ArrayDeque<>();
        new TreeSet<>(graph.getSourceIDs()).forEach(id -> waiting.add(graph.getStreamNode(id)));
        List<StreamNode> order = new ArrayList<>();
        while (!waiting.isEmpty()) {
            StreamNode node = waiting.remove();
            if (node.getTransformationUID() == null
                    && !node.getInEdges().stream().allMatch(e -> done.contains(e.getSourceId()))) {
                seen.remove(node.getId()); // another input will come back to it
                continue;
            }
            done.add(node.getId());
            order.add(node);
            for (StreamEdge edge : node.getOutEdges()) {
                if (seen.add(edge.getTargetId())) {
                    waiting.add(graph.getStreamNode(edge.getTargetId()));
                }
            }
        }
        return order;
    }

    /** Murmur3 of 128 bits, by which Flink makes ids. */
    private static byte[] hash(byte[] text) {
        ByteBuffer blocks = ByteBuffer.wrap(text).order(ByteOrder.LITTLE_ENDIAN);
        long[] state = new long[2];
        while (blocks.remaining() >= 16) {
            mix(state, blocks.getLong(), blocks.getLong());
        }
        ByteBuffer tail = ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).put(blocks);
        long h1 = state[0] ^ spread(tail.getLong(0), C1, 31, C2) ^ text.length;
        long h2 = state[1] ^ spread(tail.getLong(8), C2, 33, C1) ^ text.length;
        h1 += h2;
        h2 += h1;
        h1 = scramble(h1, F1, F2);
        h2 = scramble(h2, F1, F2);
        h1 += h2;
        h2 += h1;
        return ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putLong(h1).putLong(h2).array();
    }

    private static void mix(long[] state, long k1, long k2) {
        state[0] ^= spread(k1, C1, 31, C2);
        state[0] = (Long.rotateLeft(state[0], 27) + state[1]) * 5 + D1;
        state[1] ^= spread(k2, C2, 33, C1);
        state[1] = (Long.rotateLeft(state[1], 31) + state[0]) * 5 + D2;
    }

    private static long spread(long k, long first, int turn, long second) {
        return Long.rotateLeft(k * first, turn) * second;
    }

    private static long scramble(long h, long first, long second) {
        h = (h ^ h >>> 33) * first;
        h = (h ^ h >>> 33) * second;
        return h ^ h >>> 33;
    }

    /**
     * Text whose hash is an id. Of its two blocks of 16 bytes any first one has a second one that
     * leads there, so first ones are tried until the second is text, too: UTF-8 without controls.
     */
    private static String uid(byte[] id) {
        ByteBuffer wanted = ByteBuffer.wrap(id).order(ByteOrder.LITTLE_ENDIAN);
        long h1 = wanted.getLong(), h2 = wanted.getLong() - h1; // hash(), backwards
        h1 = scramble(h1 - h2, inverse(F2), inverse(F1));
        h2 = scramble(h2, inverse(F2), inverse(F1)) - h1;
        h1 = h1 - h2 ^ UID_BYTES;
        h2 ^= UID_BYTES;
        long fifth = inverse(5), c1 = inverse(C1), c2 = inverse(C2);
        long after1 = (h1 - D1) * fifth, after2 = Long.rotateRight((h2 - D2) * fifth - h1, 31);
        ByteBuffer text = ByteBuffer.allocate(UID_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        text.put("streampl".getBytes(StandardCharsets.US_ASCII));
        long[] state = new long[2];
        mix(state, text.getLong(0), 0);
        long begun = state[0]; // the second word changes the second half of the state alone
        for (long number = 0; ; number++) {
            long letters = 0x6161616161616161L; // "aaaaaaaa"
            for (int i = 0; i < 8; i++) {
                letters += (number >>> 4 * i & 15) << 8 * i;
            }
            long half = (Long.rotateLeft(spread(letters, C2, 33, C1), 31) + begun) * 5 + D2;
            long k2 = spread(after2 ^ half, c1, -33, c2);
            long k1 = spread(Long.rotateRight(after1 - half, 27) ^ begun, c2, -31, c1);
            if (isText(k1, k2)) {
                text.putLong(8, letters).putLong(16, k1).putLong(24, k2);
                return new String(text.array(), StandardCharsets.UTF_8);
            }
        }
    }

    /** Whether sixteen bytes are UTF-8, and hold no control characters. */
    private static boolean isText(long first, long second) {
        int due = 0, least = 0, most = 0;
        for (int i = 0; i < 16; i++) {
            int letter = (int) ((i < 8 ? first : second) >>> 8 * (i & 7)) & 255;
            if (due > 0) {
                if (letter < least || letter > most) {
                    return false;
                }
                due--;
                least = 0x80;
                most = 0xbf;
            } else if (letter >= 0x80) {
                if (letter < 0xc2 || letter > 0xf4) {
                    return false;
                }
                due = letter < 0xe0 ? 1 : letter < 0xf0 ? 2 : 3;
                least = letter == 0xc2 || letter == 0xe0 ? 0xa0 : letter == 0xf0 ? 0x90 : 0x80;
                most = letter == 0xed ? 0x9f : letter == 0xf4 ? 0x8f : 0xbf;
            } else if (letter < 0x20 || letter == 0x7f) {
                return false;
            }
        }
        return due == 0;
    }

    /** What undoes multiplying by an odd number. */
    private static long inverse(long odd) {
        long found = odd;
        for (int i = 0; i < 5; i++) {
            found *= 2 - odd * found;
        }
        return found;
    }
}
