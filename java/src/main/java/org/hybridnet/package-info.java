/**
 * HybridNet for Java: exported models, arrays, operators and gradients, without Python.
 *
 * <p>{@link org.hybridnet.Model} runs models of {@code HybridBlock.export()}, loops included, {@link
 * org.hybridnet.Session} runs them without allocations, and {@link org.hybridnet.Batcher} for many
 * threads at once; {@link org.hybridnet.NDArray} holds inputs and outputs; {@link
 * org.hybridnet.Operator} runs any operator by its name; {@link org.hybridnet.Autograd} computes
 * gradients, {@link org.hybridnet.Trainer} applies them, {@link org.hybridnet.Group} joins processes
 * that train together. Objects own memory outside Java's heap:
 * close them, best by {@code try (...)}. Otherwise the memory is freed after the garbage collector
 * has found the object unreachable. All methods may be called from any thread, also many at once on
 * one object. A failure throws a {@link org.hybridnet.HybridNetError}; use of a closed object throws
 * an {@link java.lang.IllegalStateException}.
 */
package org.hybridnet;
