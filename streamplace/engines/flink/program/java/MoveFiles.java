/*
 * Small files beside savepoints, written and read by the JobManager, which reaches the folder whatever
 * file system it is on. Arguments: what to do, a folder or a file, a text. The answer, in Base64, is
 * the message of an exception: that is how a main method tells something to who runs it by REST.
 *
 *     create FILE TEXT    "created", or "exists" where there is such a file already
 *     write FILE TEXT     "written", whether there was such a file or not
 *     delete FILE         "deleted", whether there was such a file or not
 *     list FOLDER PREFIX  a line for each file or folder: age in ms, tab, name
 *     complete FOLDER PREFIX  the same, for each folder in it that contains complete state; the age
 *                         is that of its metadata
 *     read FILE           its text; nothing where there is no such file
 *     room FILE           writes and deletes the file; bytes that are free, or -1 where the file
 *                         system does not tell
 *     spend               submits a job that can never run, so that its id is used up
 */
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.flink.api.common.operators.SlotSharingGroup;
import org.apache.flink.core.fs.FSDataInputStream;
import org.apache.flink.core.fs.FSDataOutputStream;
import org.apache.flink.core.fs.FileStatus;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.core.fs.FileSystem.WriteMode;
import org.apache.flink.core.fs.Path;
import org.apache.flink.core.fs.local.LocalFileSystem;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

public final class MoveFiles {
    /**
     * A journal names the devices of all subtasks before and after the move. Its text is a third
     * longer in Base64, and Flink repeats it with every cause in an answer of at most 64 MiB.
     */
    private static final int MOST_BYTES = 1 << 23;
    private static final int TEST_BYTES = 1 << 16;

    private MoveFiles() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("spend")) {
            spend();
            return;
        }
        byte[] answer = answer(arguments).getBytes(StandardCharsets.UTF_8);
        String text = Base64.getEncoder().encodeToString(answer);
        throw new IllegalStateException("streamplace: <" + text + ">");
    }

    private static String answer(String[] arguments) throws IOException {
        Path path = new Path(arguments[1]);
        FileSystem files = path.getFileSystem();
        switch (arguments[0]) {
            case "create":
                return create(files, path, arguments[2]) ? "created" : "exists";
            case "write":
                write(files, path, arguments[2]);
                return "written";
            case "delete":
                files.delete(path, false);
                return "deleted";
            case "list":
                return list(files, path, arguments[2]);
            case "complete":
                return complete(files, path, arguments[2]);
            case "read":
                return read(files, path);
            case "room":
                return Long.toString(room(files, path));
            default:
                throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static boolean create(FileSystem files, Path path, String text) throws IOException {
        files.mkdirs(path.getParent());
        if (files.exists(path)) {
            return false;
        }
        FSDataOutputStream stream;
        try {
            stream = files.create(path, WriteMode.NO_OVERWRITE);
        } catch (IOException failure) {
            if (files.exists(path)) {
                return false;
            }
            throw failure;
        }
        fill(files, path, stream, text.getBytes(StandardCharsets.UTF_8));
        return true;
    }

    /** A file that cannot be written whole is deleted: an empty one would be a lock of nobody. */
    private static void fill(FileSystem files, Path path, FSDataOutputStream stream, byte[] content)
            throws IOException {
        try (FSDataOutputStream open = stream) {
            hide(files, path);
            ((OutputStream) open).write(content);
        } catch (IOException failure) {
            files.delete(path, false);
            throw failure;
        }
    }

    private static void write(FileSystem files, Path path, String text) throws IOException {
        try (FSDataOutputStream stream = files.create(path, WriteMode.OVERWRITE)) {
            hide(files, path);
            ((OutputStream) stream).write(text.getBytes(StandardCharsets.UTF_8));
        }
    }

    /** A journal contains the arguments of the job, which may be secret. */
    private static void hide(FileSystem files, Path path) {
        if (files instanceof LocalFileSystem) {
            File file = new File(path.getPath());
            if (file.setReadable(false, false) && file.setWritable(false, false)) {
                file.setReadable(true, true);
                file.setWritable(true, true);
            }
        }
    }

    private static long room(FileSystem files, Path path) throws IOException {
        files.mkdirs(path.getParent());
        FSDataOutputStream stream = files.create(path, WriteMode.NO_OVERWRITE);
        fill(files, path, stream, new byte[TEST_BYTES]);
        files.delete(path, false);
        if (!(files instanceof LocalFileSystem)) {
            return -1;
        }
        return new File(path.getParent().getPath()).getUsableSpace();
    }

    private static String list(FileSystem files, Path folder, String prefix) throws IOException {
        StringBuilder lines = new StringBuilder();
        long now = System.currentTimeMillis();
        FileStatus[] all = files.exists(folder) ? files.listStatus(folder) : null;
        for (FileStatus one : all == null ? new FileStatus[0] : all) {
            if (one.getPath().getName().startsWith(prefix)) {
                long age = now - one.getModificationTime();
                lines.append(age).append('\t').append(one.getPath().getName()).append('\n');
            }
        }
        return lines.toString();
    }

    private static String complete(FileSystem files, Path folder, String prefix)
            throws IOException {
        StringBuilder lines = new StringBuilder();
        long now = System.currentTimeMillis();
        FileStatus[] all = files.exists(folder) ? files.listStatus(folder) : null;
        for (FileStatus one : all == null ? new FileStatus[0] : all) {
            Path metadata = new Path(one.getPath(), "_metadata");
            if (one.getPath().getName().startsWith(prefix) && files.exists(metadata)) {
                long age = now - files.getFileStatus(metadata).getModificationTime();
                lines.append(age).append('\t').append(one.getPath().getName()).append('\n');
            }
        }
        return lines.toString();
    }

    private static String read(FileSystem files, Path path) throws IOException {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        try (FSDataInputStream stream = files.open(path)) {
            content.write(((InputStream) stream).readNBytes(MOST_BYTES));
        } catch (FileNotFoundException absent) {
            return "";
        }
        return content.toString(StandardCharsets.UTF_8);
    }

    /** Its operators ask for a resource that no TaskManager has. */
    private static void spend() throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        SlotSharingGroup nowhere =
                SlotSharingGroup.newBuilder("nowhere")
                        .setCpuCores(0.001)
                        .setTaskHeapMemoryMB(1)
                        .setExternalResource("streamplace-nowhere", 1.0)
                        .build();
        env.fromSequence(0, 1)
                .slotSharingGroup(nowhere)
                .sinkTo(new DiscardingSink<>())
                .slotSharingGroup(nowhere);
        env.executeAsync("streamplace: not to be started any more");
    }
}
