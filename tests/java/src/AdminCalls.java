import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsOptions;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;

/** One call of the admin client after the other; tells what each gave. --topic: one there is, with three partitions. */
final class AdminCalls {
    private final Admin admin;
    private final String topic;

    private AdminCalls(Arguments arguments) {
        admin = Admin.create(arguments.clientSettings());
        topic = arguments.get("topic");
    }

    static int run(Arguments arguments) {
        AdminCalls calls = new AdminCalls(arguments);
        calls.cluster();
        calls.configs();
        calls.topics();
        // Last: only a client that is connected asks for it.
        call("clientInstanceId", () -> calls.admin.clientInstanceId(Duration.ofSeconds(10)));
        calls.admin.close(Duration.ofSeconds(5));
        Report.event("done");
        return 0;
    }

    private static void call(String name, Callable<Object> call) {
        try {
            Report.event("call", "name", name, "result", call.call());
        } catch (Exception thrown) {
            Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
            Report.event("call", "name", name, "error", cause.getClass().getSimpleName(), "text", cause.getMessage());
        }
    }

    private void cluster() {
        Set<TopicPartition> first = Set.of(new TopicPartition(topic, 0));
        call("describeMetadataQuorum", this::quorum);
        call("describeFeatures", () -> new TreeMap<>(admin.describeFeatures().featureMetadata().get().finalizedFeatures()));
        call("updateFeatures", () -> update("transaction.version", 2));
        call("updateFeatures unknown", () -> update("no.such.feature", 2));
        call("electLeaders", () -> {
            TreeMap<String, Object> told = new TreeMap<>();
            for (Map.Entry<TopicPartition, Optional<Throwable>> entry
                    : admin.electLeaders(ElectionType.PREFERRED, first).partitions().get().entrySet()) {
                told.put(entry.getKey().toString(), entry.getValue().map(e -> e.getClass().getSimpleName()).orElse(null));
            }
            return told;
        });
        call("listPartitionReassignments", () -> admin.listPartitionReassignments().reassignments().get());
        call("alterPartitionReassignments", () -> reassign(Optional.of(new NewPartitionReassignment(List.of(2, 1)))));
        call("alterPartitionReassignments cancel", () -> reassign(Optional.empty()));
        call("describeAcls", () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
        call("describeUserScramCredentials", () -> admin.describeUserScramCredentials().all().get());
        call("describeLogDirs", () -> new TreeSet<>(admin.describeLogDirs(List.of(1, 2, 3)).allDescriptions().get().keySet()));
    }

    private Object quorum() throws Exception {
        QuorumInfo info = admin.describeMetadataQuorum().quorumInfo().get();
        TreeMap<String, Object> voters = new TreeMap<>();
        for (QuorumInfo.ReplicaState voter : info.voters()) {
            voters.put(String.valueOf(voter.replicaId()), voter.logEndOffset());
        }
        return Map.of("leader", info.leaderId(), "epoch", info.leaderEpoch(), "committed", info.highWatermark(),
                "voters", voters);
    }

    private Object update(String feature, int level) throws Exception {
        FeatureUpdate update = new FeatureUpdate((short) level, FeatureUpdate.UpgradeType.UPGRADE);
        return admin.updateFeatures(Map.of(feature, update), new UpdateFeaturesOptions()).all().get();
    }

    private Object reassign(Optional<NewPartitionReassignment> to) throws Exception {
        return admin.alterPartitionReassignments(Map.of(new TopicPartition(topic, 0), to)).all().get();
    }

    /** Names with value, source and read-only. */
    private Object describe(ConfigResource.Type type, String name) throws Exception {
        ConfigResource resource = new ConfigResource(type, name);
        Config config = admin.describeConfigs(List.of(resource),
                        new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true))
                .all().get().get(resource);
        TreeMap<String, Object> told = new TreeMap<>();
        for (ConfigEntry entry : config.entries()) {
            told.put(entry.name(), Arrays.asList(entry.value(), entry.source(), entry.isReadOnly(), entry.type(),
                    entry.synonyms().size(), entry.documentation() == null ? 0 : entry.documentation().length()));
        }
        return told;
    }

    private Object alter(ConfigResource.Type type, String name, AlterConfigOp.OpType op, String key, String value,
            boolean validateOnly) throws Exception {
        Map<ConfigResource, Collection<AlterConfigOp>> changes = new HashMap<>();
        changes.put(new ConfigResource(type, name), List.of(new AlterConfigOp(new ConfigEntry(key, value), op)));
        return admin.incrementalAlterConfigs(changes, new AlterConfigsOptions().validateOnly(validateOnly)).all().get();
    }

    private void configs() {
        for (ConfigResource.Type type : ConfigResource.Type.values()) {
            if (type != ConfigResource.Type.UNKNOWN) {
                call("describeConfigs " + type,
                        () -> describe(type, type == ConfigResource.Type.TOPIC ? topic : "1"));
            }
        }
        call("describeConfigs of all brokers", () -> describe(ConfigResource.Type.BROKER, ""));
        AlterConfigOp.OpType set = AlterConfigOp.OpType.SET;
        call("alter topic", () -> alter(ConfigResource.Type.TOPIC, topic, set, "retention.ms", "7200000", false));
        call("alter topic validate", () -> alter(ConfigResource.Type.TOPIC, topic, set, "retention.ms", "1", true));
        call("alter topic bad value", () -> alter(ConfigResource.Type.TOPIC, topic, set, "retention.ms", "x", false));
        call("alter topic bad key", () -> alter(ConfigResource.Type.TOPIC, topic, set, "no.such.key", "1", false));
        call("alter topic append", () -> alter(ConfigResource.Type.TOPIC, topic, AlterConfigOp.OpType.APPEND,
                "cleanup.policy", "compact", false));
        call("alter topic append to a number", () -> alter(ConfigResource.Type.TOPIC, topic,
                AlterConfigOp.OpType.APPEND, "retention.ms", "1", false));
        call("describeConfigs after", () -> describe(ConfigResource.Type.TOPIC, topic));
        call("alter broker", () -> alter(ConfigResource.Type.BROKER, "1", set, "message.max.bytes", "1000", false));
        call("alter all brokers", () -> alter(ConfigResource.Type.BROKER, "", set, "message.max.bytes", "1000", false));
        call("alter logger", () -> alter(ConfigResource.Type.BROKER_LOGGER, "1", set, "root", "DEBUG", false));
        call("alter client metrics", () -> alter(ConfigResource.Type.CLIENT_METRICS, "all", set, "interval.ms", "1000", false));
    }

    private void topics() {
        call("describeTopics", () -> {
            // Two partitions a page, so three need a second one.
            TopicDescription told = admin.describeTopics(TopicCollection.ofTopicNames(List.of(topic)),
                            new DescribeTopicsOptions().partitionSizeLimitPerResponse(2).includeAuthorizedOperations(true))
                    .allTopicNames().get().get(topic);
            return Map.of("partitions", told.partitions().size(), "replicas", told.partitions().get(2).replicas().size(),
                    "operations", told.authorizedOperations().size());
        });
        call("describeTopics unknown", () -> admin.describeTopics(List.of("none")).allTopicNames().get());
        call("createTopics validate", () -> {
            NewTopic fresh = new NewTopic("fresh", 5, (short) 2).configs(Map.of("retention.ms", "1000"));
            CreateTopicsResult told = admin.createTopics(List.of(fresh), new CreateTopicsOptions().validateOnly(true));
            ConfigEntry entry = told.config("fresh").get().get("retention.ms");
            return List.of(told.numPartitions("fresh").get(), told.replicationFactor("fresh").get(), entry.value(),
                    entry.source());
        });
        call("createTopics validate existing", () -> admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1)),
                new CreateTopicsOptions().validateOnly(true)).all().get());
    }
}
