import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** SIGTERM asks the program to stop, and waits until it has. */
final class Stop {
    private final CountDownLatch finished = new CountDownLatch(1);
    private volatile boolean asked;

    /** {@code wake} is called from another thread. */
    Stop(Runnable wake) {
        Runtime.getRuntime()
                .addShutdownHook(
                        new Thread(
                                () -> {
                                    asked = true;
                                    wake.run();
                                    await();
                                }));
    }

    boolean asked() {
        return asked;
    }

    void done() {
        finished.countDown();
    }

    private void await() {
        try {
            finished.await(20, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
