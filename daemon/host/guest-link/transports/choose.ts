/**
 * Choice of a guest's vsock transport: for a new guest the kernel's if it opens, else the vhost-user device; for an adopted guest the kind
 * that it was started with. A port of the kernel's is bound for the first guest only, so that a process that only inspects the host,
 * alongside a daemon, binds none.
 *
 * Only root may listen on the ports that agents dial. Agents of older templates dial others, which are bound for them alone.
 */
import { closeSync, existsSync, openSync } from "node:fs";
import { HOST_PORT, OPEN_HOST_PORT, PROOF_GENERATION } from "../../../../shared/agent-protocol/messages.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import { CAP_NET_BIND_SERVICE, hasCapability } from "../../capabilities.ts";
import { programVersion } from "../../probe.ts";
import { makeKernelTransport, VHOST_VSOCK } from "./kernel.ts";
import type { VsockTransport } from "./transport.ts";
import { makeVhostUserTransport } from "./vhost-user.ts";

export interface TransportOptions {
  wanted: "auto" | "kernel" | "vhost-user";
  /** The vhost-device-vsock to run. */
  program: string;
  /** Throws while other daemons use all its ports. */
  openKernel?: typeof makeKernelTransport;
  device?: string;
  /** Whether this process may listen on privileged ports. */
  mayListen?: () => boolean;
}

/** The first port that an agent dials. */
export function firstPortOf(agentGeneration: number): number {
  return agentGeneration < PROOF_GENERATION ? OPEN_HOST_PORT : HOST_PORT;
}

export class Transports {
  readonly #wanted: TransportOptions["wanted"];
  readonly #program: string;
  readonly #openKernel: typeof makeKernelTransport;
  readonly #kernel = new Map<number, ReturnType<typeof makeKernelTransport>>();
  readonly #device: string;
  readonly #mayListen: () => boolean;
  #kind: VsockTransport["kind"] | null = null;
  #reason = "";
  /** The vhost-device-vsock's. */
  #version: string | null = null;

  constructor({
    wanted,
    program,
    openKernel = makeKernelTransport,
    device = VHOST_VSOCK,
    mayListen = () => hasCapability(CAP_NET_BIND_SERVICE),
  }: TransportOptions) {
    this.#wanted = wanted;
    this.#program = program;
    this.#openKernel = openKernel;
    this.#device = device;
    this.#mayListen = mayListen;
  }

  /** Transport of new guests, and the reason; null if absent. */
  get found(): { kind: VsockTransport["kind"] | null; reason: string } {
    return { kind: this.#kind, reason: this.#reason };
  }

  /** Whether guests have the kernel's vsock, over which they reach every listener on the host's. */
  get reachesHost(): boolean {
    return this.#kind === "kernel" || this.#kernel.size > 0;
  }

  /** The kernel's vsock ports on which this process listens. */
  get ports(): number[] {
    return [...this.#kernel.values()].map(({ port }) => port);
  }

  /** For new guests. Throws not_ready. */
  get chosen(): VsockTransport {
    if (this.#kind === null) throw new ServiceError("not_ready", { detail: this.#reason });
    return this.#kind === "kernel"
      ? this.#openedKernel(HOST_PORT, "The kernel's vsock cannot be used")
      : this.of("vhost-user", HOST_PORT);
  }

  /** Determines the transport for new guests. */
  async choose(): Promise<void> {
    let why = "";
    if (this.#wanted !== "vhost-user" && (this.#wanted === "kernel" || existsSync(this.#device))) {
      try {
        closeSync(openSync(this.#device, "r+"));
        if (!this.#mayListen())
          throw new Error("roomd may not listen on ports below 1024: CAP_NET_BIND_SERVICE is missing");
        this.#kind = "kernel";
        this.#reason = "Guests use the kernel's vhost-vsock.";
        return;
      } catch (error) {
        why = ` (the kernel's could not be used: ${error instanceof Error ? error.message : String(error)})`;
        this.#reason = `vhost-vsock cannot be used${why}.`;
        if (this.#wanted === "kernel") return;
      }
    }
    const version = await programVersion(this.#program);
    this.#version = version;
    this.#kind = version === null ? null : "vhost-user";
    this.#reason =
      version === null
        ? `There is neither ${VHOST_VSOCK} nor ${this.#program} on this host${why}.`
        : `Guests use vhost-device-vsock ${version}${why}.`;
  }

  /** For a guest that was started with this kind, or whose agent dials other ports. Throws not_ready while it is unavailable. */
  of(kind: VsockTransport["kind"], firstPort: number): VsockTransport {
    if (kind === "vhost-user") return makeVhostUserTransport(this.#program, this.#version, firstPort);
    return this.#openedKernel(firstPort, "It needs the kernel's vsock, which cannot be used");
  }

  close(): void {
    for (const transport of this.#kernel.values()) transport.stop();
  }

  #openedKernel(firstPort: number, otherwise: string): VsockTransport {
    try {
      const opened = this.#kernel.get(firstPort) ?? this.#openKernel(firstPort);
      this.#kernel.set(firstPort, opened);
      return opened;
    } catch (error) {
      throw new ServiceError("not_ready", { detail: `${otherwise}: ${describeError(error)}.`, cause: error });
    }
  }
}
