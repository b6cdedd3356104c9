package org.apache.storm.topology;
public interface ResourceDeclarer<T extends ResourceDeclarer> {
    T setCPULoad(Number amount);
    T addResource(String resourceName, Number resourceValue);
}
