/*
 * Metric reporter that shows the CPU of the threads of a TaskManager as a metric, for streamplace.
 *
 * It reports to nobody: it adds gauges to the group of the TaskManager, which Flink's REST interface
 * shows like its own. Put this jar into a folder of its own below Flink's plugins/, and add
 *     metrics.reporters: streamplace
 *     metrics.reporter.streamplace.factory.class: CpuReporter
 * to the configuration of the TaskManagers. It reads /proc/self when it is asked, and has no thread.
 *
 * A gauge is a text of at most MOST_BYTES, since Flink sends no longer ones. All gauges together are
 * one table, in lines of words that are separated by blanks:
 *     streamplace VERSION NUMBER CHUNK CHUNKS
 * in each of them; then, in the first, in nanoseconds (-1 if unknown),
 *     process CPU MOMENT BOOT CORES PINNED QUOTA THROTTLED GROUP
 * and one line for each thread, whose name ends the line:
 *     ID CPU DELAY WAKES NAME
 */
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.ObjectName;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.Metric;
import org.apache.flink.metrics.MetricConfig;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.reporter.MetricReporter;
import org.apache.flink.metrics.reporter.MetricReporterFactory;

public final class CpuReporter implements MetricReporterFactory, MetricReporter {
    private static final int VERSION = 1;

    /** Flink writes the length of a text as a number of 16 bits. */
    private static final int MOST_BYTES = 60_000;

    private static final int GAUGES = 16;

    /** Flink reads a gauge twice, and all gauges one after the other. */
    private static final long FRESH_NANOS = 300_000_000L;

    /** A dump that names new threads is taken no more often; until then they have short names. */
    private static final long NAMES_NANOS = 2_000_000_000L;

    private static final long TICK_NANOS = 10_000_000L;
    private static final Path SELF = Path.of("/proc/self");
    private static final Path GROUPS = Path.of("/sys/fs/cgroup");
    private static final Pattern THREAD =
            Pattern.compile("^\"(.+)\" [^\"\\n]*?\\bnid=(0x[0-9a-f]+|\\d+)", Pattern.MULTILINE);

    private final Map<Long, String> names = new HashMap<>();
    private final Set<Long> known = new HashSet<>();
    private List<String> chunks = List.of();
    private long number;
    private long readAt;
    private long namedAt;
    private boolean isAdded;

    @Override
    public MetricReporter createMetricReporter(Properties properties) {
        return new CpuReporter();
    }

    @Override
    public void open(MetricConfig config) {}

    @Override
    public void close() {}

    @Override
    public void notifyOfRemovedMetric(Metric metric, String name, MetricGroup group) {}

    /** Adds the gauges to the group that Flink hands over with the CPU time of a TaskManager. */
    @Override
    public void notifyOfAddedMetric(Metric metric, String name, MetricGroup group) {
        if (isAdded || !name.equals("Time") || !group.getAllVariables().containsKey("<tm_id>")) {
            return;
        }
        String scope = String.join(".", group.getScopeComponents());
        if (!scope.endsWith("Status.JVM.CPU")) {
            return;
        }
        isAdded = true;
        for (int i = 0; i < GAUGES; i++) {
            int chunk = i;
            group.gauge("streamplace" + i, (Gauge<String>) () -> chunk(chunk));
        }
    }

    private synchronized String chunk(int i) {
        if (chunks.isEmpty() || System.nanoTime() - readAt > FRESH_NANOS) {
            chunks = read();
            readAt = System.nanoTime();
            number++;
        }
        String head = "streamplace " + VERSION + " " + number + " " + i + " " + chunks.size() + "\n";
        return head + (i < chunks.size() ? chunks.get(i) : "");
    }

    private List<String> read() {
        List<String> rows = new ArrayList<>();
        try {
            rows.add(process());
            List<Long> ids = new ArrayList<>();
            try (DirectoryStream<Path> tasks = Files.newDirectoryStream(SELF.resolve("task"))) {
                tasks.forEach(task -> ids.add(Long.parseLong(task.getFileName().toString())));
            }
            long now = System.nanoTime();
            if (!known.containsAll(ids) && (known.isEmpty() || now - namedAt > NAMES_NANOS)) {
                findNames();
                known.clear();
                known.addAll(ids);
                namedAt = now;
            }
            for (long id : ids) {
                String row = thread(id);
                if (row != null) {
                    rows.add(row);
                }
            }
        } catch (Exception error) {
            rows = List.of("fault " + error);
        }
        List<String> made = new ArrayList<>();
        StringBuilder chunk = new StringBuilder();
        int size = 0;
        for (String row : rows) {
            int bytes = 3 * row.length() + 1;
            if (size + bytes > MOST_BYTES) {
                made.add(chunk.toString());
                chunk.setLength(0);
                size = 0;
            }
            chunk.append(row).append('\n');
            size += bytes;
        }
        made.add(chunk.toString());
        return made;
    }

    /** Full names of threads by their ids in the kernel, from the same dump as that of jcmd. */
    private void findNames() {
        try {
            ObjectName bean = new ObjectName("com.sun.management:type=DiagnosticCommand");
            Object[] arguments = {new String[0]};
            String[] types = {String[].class.getName()};
            Object dump =
                    ManagementFactory.getPlatformMBeanServer()
                            .invoke(bean, "threadPrint", arguments, types);
            names.clear();
            Matcher threads = THREAD.matcher(dump.toString());
            while (threads.find()) {
                names.put(Long.decode(threads.group(2)), threads.group(1));
            }
        } catch (Exception error) {
            // this Java has no such command: threads have the names of the kernel
        }
    }

    /** Line of a thread; null if it has ended. */
    private String thread(long id) {
        Path task = SELF.resolve("task").resolve(Long.toString(id));
        try {
            String status = text(task.resolve("status"));
            String name = names.getOrDefault(own(status, id), field(status, "Name:"));
            String[] spent = text(task.resolve("schedstat")).trim().split(" ");
            String wakes = field(status, "voluntary_ctxt_switches:");
            return own(status, id) + " " + spent[0] + " " + spent[1] + " " + wakes + " "
                    + name.replace("\\", "\\\\").replace("\n", "\\n");
        } catch (IOException | RuntimeException error) {
            return null;
        }
    }

    /** Id of a thread in the innermost container, by which Java knows it. */
    private static long own(String status, long id) {
        String[] ids = field(status, "NSpid:").split("\\s+");
        return ids[0].isEmpty() ? id : Long.parseLong(ids[ids.length - 1]);
    }

    private static String process() throws IOException {
        String stat = text(SELF.resolve("stat"));
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        long cpu = (Long.parseLong(fields[11]) + Long.parseLong(fields[12])) * TICK_NANOS;
        String boot = text(Path.of("/proc/sys/kernel/random/boot_id")).trim();
        long cores = text(Path.of("/proc/stat")).lines().filter(r -> r.matches("cpu\\d.*")).count();
        String pinned = field(text(SELF.resolve("status")), "Cpus_allowed_list:");
        String[] group = group();
        return "process " + cpu + " " + System.nanoTime() + " " + boot + " " + cores + " "
                + (pinned.isEmpty() ? "-" : pinned) + " " + String.join(" ", group);
    }

    /** Quota in cores (-1 without one), throttled time, and path of the cgroup with the least quota. */
    private static String[] group() {
        String[] least = {"-1", "-1", "/"};
        double fewest = Double.MAX_VALUE;
        for (String row : textOrNothing(SELF.resolve("cgroup")).split("\n")) {
            String[] words = row.split(":", 3);
            if (words.length < 3 || !(words[1].isEmpty() || words[1].matches("(.*,)?cpu(,.*)?"))) {
                continue;
            }
            Path mount = words[1].isEmpty() ? GROUPS : GROUPS.resolve("cpu");
            Path path = Path.of(words[2]);
            for (Path own = path; own != null; own = own.getParent()) {
                Path folder = mount.resolve(own.toString().substring(1));
                double quota = quota(folder);
                if (quota > 0 && quota <= fewest) {
                    fewest = quota;
                    String stat = textOrNothing(folder.resolve("cpu.stat"));
                    String micros = field(stat, "throttled_usec");
                    String nanos = micros.isEmpty() ? field(stat, "throttled_time") : micros + "000";
                    String name = own.toString().replaceAll("\\s", "_");
                    least = new String[] {"" + quota, nanos.isEmpty() ? "-1" : nanos, name};
                }
            }
        }
        return least;
    }

    private static double quota(Path folder) {
        String[] most = textOrNothing(folder.resolve("cpu.max")).trim().split(" ");
        if (most.length < 2) {
            String quota = textOrNothing(folder.resolve("cpu.cfs_quota_us")).trim();
            most = new String[] {quota, textOrNothing(folder.resolve("cpu.cfs_period_us")).trim()};
        }
        try {
            return Double.parseDouble(most[0]) / Double.parseDouble(most[1]);
        } catch (NumberFormatException error) {
            return -1;
        }
    }

    private static String field(String text, String name) {
        return text.lines()
                .filter(row -> row.startsWith(name))
                .map(row -> row.substring(name.length()).trim())
                .findFirst()
                .orElse("");
    }

    private static String text(Path path) throws IOException {
        return new String(Files.readAllBytes(path), StandardCharsets.UTF_8);
    }

    private static String textOrNothing(Path path) {
        try {
            return text(path);
        } catch (IOException | RuntimeException error) {
            return "";
        }
    }
}
