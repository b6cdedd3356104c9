/* Reads the files of a folder and tells each of their lines once, slowly while there is a file "slow"
 * in the folder where it tells them; no operator has a uid.
 * Arguments: the folder to read, the folder to tell it in. */
import java.io.File;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

public final class FilesJob {
    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        File slow = new File(arguments[1], "slow");
        FileSource<String> files =
                FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(arguments[0]))
                        .build();
        env.fromSource(files, WatermarkStrategy.noWatermarks(), "files")
                .map(
                        line -> {
                            Thread.sleep(slow.exists() ? 100 : 1);
                            return line;
                        })
                .returns(Types.STRING)
                .process(new TallyJob.Tell(arguments[1], "lines"))
                .sinkTo(new DiscardingSink<>());
        env.execute("files");
    }
}
