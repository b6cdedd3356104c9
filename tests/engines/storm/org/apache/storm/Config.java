package org.apache.storm;
public class Config extends java.util.HashMap<String, Object> {}
