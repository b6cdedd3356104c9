import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.LiteralTree;
import com.sun.source.tree.Tree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreeScanner;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;

/** Says of each source, a line in base64, what javac's parser makes of it: kinds and texts. */
public final class ParseJava {
    public static void main(String[] none) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(String.join(" ", parsed(compiler, decoded(line))));
        }
    }

    private static List<String> parsed(JavaCompiler compiler, String source) throws Exception {
        JavaFileObject file = new SimpleJavaFileObject(URI.create("mem:///A.java"), JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean ignored) {
                return source;
            }
        };
        DiagnosticCollector<JavaFileObject> faults = new DiagnosticCollector<>();
        JavacTask task = (JavacTask) compiler.getTask(null, null, faults, null, null, List.of(file));
        List<String> found = new ArrayList<>();
        for (CompilationUnitTree unit : task.parse()) {
            new TreeScanner<Void, Void>() {
                @Override
                public Void scan(Tree tree, Void nothing) {
                    if (tree != null) {
                        found.add(tree.getKind().toString());
                    }
                    return super.scan(tree, nothing);
                }

                @Override
                public Void visitLiteral(LiteralTree tree, Void nothing) {
                    found.add("=" + encoded(String.valueOf(tree.getValue())));
                    return null;
                }
            }.scan(unit, null);
        }
        faults.getDiagnostics().forEach(fault -> found.add("!" + encoded(fault.toString())));
        return found;
    }

    private static String decoded(String line) {
        return new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
    }

    private static String encoded(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
