package org.hybridnet;

import java.time.Duration;
import java.util.Objects;

/**
 * The processes that train together, in Java, Python, C and C++ alike. {@code python -m
 * hybridnet.launch -n 4 java -cp ... Train} starts them; each finds its place in the environment:
 *
 * <pre>{@code
 * Group.run(() -> {
 *   Trainer trainer = new Trainer(model, "sgd", settings).sumOverGroup();
 *   ... // the gradients of this process' part of the data
 *   trainer.step(32 * Group.size());
 * });
 * }</pre>
 *
 * <p>All processes must make the same calls in the same order, each from one thread. Calls return
 * before the work is done, like operators. A process that dies, stops or makes another call becomes a
 * {@link GroupError} in all others, at the call or where a result is read. Names of arrays stand in
 * errors; all processes give the same, and processes in Python need one. Without a launcher the group
 * has one process.
 */
public final class Group {
  private Group() {}

  /**
   * The place of a process that no launcher has started.
   *
   * @param rank the number of this process, from 0
   * @param size the number of processes
   * @param meeting where they meet: {@code folder:/PATH}, new for each job with mode 0700, or {@code
   *     tcp://HOST:PORT}, where the launcher or a first process in Python serves
   * @param tokenFile file with the secret of the job, 32 bytes or more, mode 0600
   * @param virtualShards parts of a batch, at least size; 0: one for each process
   * @param address address of this machine for the other processes
   * @param engine library that moves the bytes
   * @param name distinguishes groups that meet in one place, one after the other
   * @param timeout how long a process waits for another one
   */
  public record Settings(
      int rank,
      int size,
      String meeting,
      String tokenFile,
      int virtualShards,
      String address,
      String engine,
      String name,
      Duration timeout) {
    /**
     * A place with the defaults: 127.0.0.1, Gloo, 60 seconds.
     *
     * @param rank the number of this process, from 0
     * @param size the number of processes
     * @param meeting where they meet
     * @param tokenFile file with the secret of the job
     */
    public Settings(int rank, int size, String meeting, String tokenFile) {
      this(rank, size, meeting, tokenFile, 0, "127.0.0.1", "gloo", "0", Duration.ofSeconds(60));
    }
  }

  /**
   * Numbers of finished calls and of bytes sent.
   *
   * @param calls finished calls
   * @param bytesSent bytes of values that this process has sent
   */
  public record Counters(long calls, long bytesSent) {}

  /**
   * Some of the virtual shards.
   *
   * @param first the first one
   * @param end the one after the last
   */
  public record Shards(int first, int end) {}

  /**
   * Joins the group that the launcher describes, or one of this process alone; returns when all
   * processes have come. The other methods do that, too.
   *
   * @throws GroupError if a process does not come, or differs in version, size or token
   * @throws UnsupportedError if the library of the engine is missing
   */
  public static void join() {
    Native.groupJoin();
  }

  /**
   * Joins a group; returns when all processes have come.
   *
   * @param settings the place of this process
   * @throws GroupError if a process does not come or differs in version, size or token, or if this
   *     process is in a group of several already
   * @throws UnsupportedError if the library of the engine is missing
   * @throws ValueError if the settings do not fit together
   */
  public static void join(Settings settings) {
    Native.groupJoinAs(
        settings.rank,
        settings.size,
        settings.virtualShards,
        Native.utf8(settings.meeting),
        Native.utf8(settings.tokenFile),
        Native.utf8(settings.address),
        Native.utf8(settings.engine),
        Native.utf8(settings.name),
        settings.timeout.toNanos() / 1e9);
  }

  /**
   * Whether this process has joined a group.
   *
   * @return true after {@link #join()} or any method that joins
   */
  public static boolean isJoined() {
    return Native.groupIsJoined();
  }

  /**
   * Leaves the group. Processes that still need this one get a {@link GroupError} with the reason.
   *
   * @param reason why it leaves, in one line
   */
  public static void leave(String reason) {
    Native.groupLeave(Native.utf8(reason));
  }

  /**
   * The number of this process in its group.
   *
   * @return from 0 to {@link #size} - 1
   */
  public static int rank() {
    return Native.groupRank();
  }

  /**
   * The number of processes of the group.
   *
   * @return 1 without a launcher
   */
  public static int size() {
    return Native.groupSize();
  }

  /**
   * The number of parts of a sum.
   *
   * @return the virtual shards of the settings, else {@link #size}
   */
  public static int virtualShards() {
    return Native.groupVirtualShards();
  }

  /**
   * The virtual shards of this process.
   *
   * @return the first one, and the one after the last
   */
  public static Shards ownShards() {
    long[] numbers = Native.groupOwnShards();
    return new Shards((int) numbers[0], (int) numbers[1]);
  }

  /**
   * The numbers of finished calls and of bytes sent in the group of this process.
   *
   * @return the numbers so far
   */
  public static Counters counters() {
    long[] numbers = Native.groupCounters();
    return new Counters(numbers[0], numbers[1]);
  }

  /**
   * The sum over all processes in a fixed order: the same bits in each process and in every run. Its
   * gradient is the sum of the gradients of all processes.
   *
   * @param array the array of this process
   * @param name its name in errors; empty: its shape
   * @return a new array, to be closed
   * @throws GroupError if another process fails or disagrees
   */
  public static NDArray sum(NDArray array, String name) {
    return NDArray.takeOne(Native.groupSum(array, Native.utf8(name)));
  }

  /**
   * Overwrites the arrays, all of one dtype, by their sums over all processes, in one message.
   *
   * @param name their name in errors; empty: their number
   * @param arrays the arrays of this process
   * @throws GroupError if another process fails or disagrees
   * @throws DTypeError if dtypes differ
   */
  public static void sumInto(String name, NDArray... arrays) {
    Native.groupSumInto(arrays, null, Native.utf8(name), 0);
  }

  /**
   * Writes the sums of arrays into other arrays.
   *
   * @param arrays the arrays of this process, all of one dtype
   * @param out one array of the same shape and dtype for each
   * @param name their name in errors; empty: their number
   * @param priority calls that wait with a higher one go first
   * @throws GroupError if another process fails or disagrees
   * @throws DTypeError if dtypes differ
   * @throws ShapeError if out differs
   */
  public static void sumInto(NDArray[] arrays, NDArray[] out, String name, int priority) {
    Native.groupSumInto(arrays, Objects.requireNonNull(out, "out"), Native.utf8(name), priority);
  }

  /**
   * The arrays of all processes, joined along a new leading axis. It has no gradient.
   *
   * @param array the array of this process
   * @param name its name in errors; empty: its shape
   * @return a new array of shape ({@link #size}, ...), to be closed
   * @throws GroupError if another process fails or disagrees
   */
  public static NDArray gather(NDArray array, String name) {
    return NDArray.takeOne(Native.groupGather(array, Native.utf8(name)));
  }

  /**
   * Overwrites the arrays, all of one dtype, by those of one process.
   *
   * @param root the number of that process
   * @param name their name in errors; empty: their number
   * @param arrays the arrays of this process
   * @throws GroupError if another process fails or disagrees
   * @throws ValueError if there is no such process
   */
  public static void broadcast(int root, String name, NDArray... arrays) {
    Native.groupBroadcast(arrays, root, Native.utf8(name));
  }

  /**
   * Returns when all processes have called it.
   *
   * @throws GroupError if another process fails or disagrees
   */
  public static void barrier() {
    Native.groupBarrier();
  }

  /** A program that may throw. */
  @FunctionalInterface
  public interface Program {
    /**
     * Runs it.
     *
     * @throws Exception if it fails
     */
    void run() throws Exception;
  }

  /**
   * Runs a program that trains with others: if it throws, the other processes read the class and the
   * text of the exception, which goes on to the caller.
   *
   * @param program the program
   * @throws Exception what the program throws
   */
  public static void run(Program program) throws Exception {
    try {
      program.run();
    } catch (GroupError known) { // the others know
      throw known;
    } catch (Throwable failure) {
      String text = String.valueOf(failure.getMessage()).lines().findFirst().orElse("");
      leave((failure.getClass().getSimpleName() + ": " + text).replace('\0', ' '));
      throw failure;
    }
  }
}
