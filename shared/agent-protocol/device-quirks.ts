/**
 * Quirks of vhost-device-vsock, which is the vsock device of guests if the host's kernel has none, and their workarounds on both ends of
 * the link. The kernel's vhost-vsock has none of them.
 *
 * Code with the device's version calls `hasQuirk`; the agent, which does not have it, always applies the workarounds. If a release fixes a
 * quirk, set it in `mended`. When no release with the quirk is supported any more, delete the quirk, its workarounds in the files of
 * `around`, and its test.
 */

interface Quirk {
  /** The device's behaviour, first seen in this version. */
  seen: string;
  does: string;
  /** The files that contain the workaround. */
  around: readonly string[];
  /** The test that shows the quirk or its workaround. */
  test: string;
  /** The first version without the quirk. */
  mended: string | null;
}

export const DEVICE_QUIRKS = {
  lost_while_stopped: {
    seen: "0.3.0",
    does: "Any packet for a guest whose queues are stopped, including the end of a connection, ends the thread that serves them.",
    around: ["daemon/host/guest-link/link-socket.ts", "daemon/host/guest/replace-vsock.ts"],
    test: "test/vm/templates/device-quirks.test.ts",
    mended: null,
  },
  end_untold: {
    seen: "0.3.0",
    does: "A guest that is writing when the host's end closes is not notified, and waits for a reply forever.",
    around: ["daemon/host/guest/replace-vsock.ts"],
    test: "test/vm/templates/device-quirks.test.ts",
    mended: null,
  },
  silent_connect: {
    seen: "0.3.0",
    does: "A guest that connects to a port without a listener gets no reply at all.",
    around: ["guest-agent/link.ts"],
    test: "test/vm/templates/device-quirks.test.ts",
    mended: null,
  },
  split_packets_lost: {
    seen: "0.3.0",
    does: "A packet in several descriptors, as Linux 6.12 sends a write of more than 32 KiB, is lost silently, credit included.",
    around: ["guest-agent/socket-link.ts"],
    test: "test/vm/templates/device-quirks.test.ts",
    mended: null,
  },
  wedged_by_early_dial: {
    seen: "0.3.0",
    does: "A connection from the host before the guest's driver is up ends the thread that serves the queues: the guest dials.",
    around: ["guest-agent/link.ts"],
    test: "test/unit/host/guest-link/device-quirks.test.ts",
    mended: null,
  },
  siblings_meet: {
    seen: "0.3.0",
    does: "Guests whose devices are in one group reach each other, and by default all are in one.",
    around: ["daemon/host/guest-link/transports/vhost-user.ts"],
    test: "test/unit/host/guest-link/device-quirks.test.ts",
    mended: null,
  },
  small_buffer: {
    seen: "0.3.0",
    does: "With its default buffer of 64 KiB a guest that sends much data blocks at every write.",
    around: ["daemon/host/guest-link/transports/vhost-user.ts"],
    test: "test/unit/host/guest-link/device-quirks.test.ts",
    mended: null,
  },
} as const satisfies Record<string, Quirk>;

export type DeviceQuirk = keyof typeof DEVICE_QUIRKS;

/** silent_connect: how long an agent waits for an answer, which otherwise takes a few ms. */
export const CONNECT_DEADLINE_MS = 500;
/** split_packets_lost: the maximum that fits into one descriptor, with its header. */
export const MAX_WRITE_BYTES = 31 * 1024;
/** split_packets_lost: a frame of this size is two whole packets; one more byte makes it three. */
export const MAX_FRAME_BYTES = 2 * MAX_WRITE_BYTES;
/** small_buffer: the maximum that a guest may send before the device has passed it on. */
export const DEVICE_BUFFER_BYTES = 256 * 1024;

/** Whether a guest's vsock device has this quirk. */
export type HasQuirk = (quirk: DeviceQuirk) => boolean;

/** The kernel's vhost-vsock. */
export const NO_QUIRKS: HasQuirk = () => false;

/** Quirks of a device of this version; null is an unknown version, which counts as having all. */
export function quirksOf(
  version: string | null,
  quirks: Record<string, Pick<Quirk, "mended">> = DEVICE_QUIRKS,
): HasQuirk {
  return (quirk) => {
    const mended = quirks[quirk]?.mended ?? null;
    return mended === null || version === null || isOlder(version, mended);
  };
}

/** Versions are numbers between dots; a part that is not a number is older than any. */
function isOlder(version: string, than: string): boolean {
  const [one, other] = [version, than].map((text) => text.split(".").map(Number));
  for (const [index, number] of (other ?? []).entries()) {
    const own = one?.[index] ?? 0;
    if (own !== number) return !(own > number);
  }
  return false;
}
