import org.apache.storm.topology.ResourceDeclarer;
public class Main implements ResourceDeclarer<Main> {
    public Main setCPULoad(Number amount) { return this; }
    public Main addResource(String name, Number value) {
        System.out.println("  " + name + " " + value);
        return this;
    }
    public static void main(String[] names) throws Exception {
        var out = new java.io.PrintStream(System.out, true, "UTF-8");
        System.setOut(out);
        for (String line : new String(System.in.readAllBytes(), "UTF-8").split("\0")) {
            out.println(line);
            Placement.pin(line, new Main());
        }
        Placement.configure(new org.apache.storm.Config()).forEach((k, v) -> out.println(k));
    }
}
