// shop: 6 operators in 3 PEs on 3 devices.
// Use: wrap every component in Placement.pin(), and the topology's settings in
//      Placement.configure(); nimbus.yaml lists what the cluster needs.
// Check: in Storm UI, Host of every component's executors.
// Storm puts the executors that acknowledge tuples wherever memory is free; set
// topology.acker.executors to 0 if you do without.
// Must share a device: clicks, parse
// Must not share one: join, score
import java.util.HashMap;
import java.util.Map;
import org.apache.storm.Config;
import org.apache.storm.topology.ResourceDeclarer;

public final class Placement {
    private static final Map<String, String[]> RESOURCES = new HashMap<>();

    static {
        RESOURCES.put("clicks", new String[] {"dev-box0"});
        RESOURCES.put("parse", new String[] {"dev-box0"});
        RESOURCES.put("orders", new String[] {"dev-box1"});
        RESOURCES.put("join", new String[] {"dev-box1"});
        RESOURCES.put("score", new String[] {"dev-gpu", "tag-gpu"});
        RESOURCES.put("sink", new String[] {"dev-box1"});
    }

    private Placement() {}

    /** Have a component run on its device: pin("join", builder.setBolt("join", new Join())). */
    public static <T extends ResourceDeclarer<T>> T pin(String component, T declarer) {
        if (!RESOURCES.containsKey(component)) {
            throw new IllegalArgumentException("not in the placement: " + component);
        }
        for (String resource : RESOURCES.get(component)) {
            declarer.addResource(resource, 1.0);
        }
        return declarer.setCPULoad(1.0); // where it runs is decided; do not count CPU again
    }

    /** Settings of the topology: count generic resources, one worker for each device's PE. */
    public static Config configure(Config conf) {
        conf.put("topology.scheduler.strategy",
            "org.apache.storm.scheduler.resource.strategies.scheduling.GenericResourceAwareStrategy");
        conf.put("topology.worker.max.heap.size.mb", 768.0);
        return conf;
    }
}
