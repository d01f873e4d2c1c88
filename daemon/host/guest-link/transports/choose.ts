/**
 * Owns which vsock transport a guest has: new ones the kernel's own where it opens, else the vhost-user device; one that is
 * taken over the one that it was started with. A port of the kernel's is taken for the first guest only, so that whoever just
 * looks, beside a daemon, takes none.
 */
import { closeSync, existsSync, openSync } from "node:fs";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import { programVersion } from "../../probe.ts";
import { makeKernelTransport, VHOST_VSOCK } from "./kernel.ts";
import type { VsockTransport } from "./transport.ts";
import { makeVhostUserTransport } from "./vhost-user.ts";

export interface TransportOptions {
  wanted: "auto" | "kernel" | "vhost-user";
  /** The vhost-device-vsock to run. */
  program: string;
  /** Throws while other daemons have all its ports. */
  openKernel?: typeof makeKernelTransport;
  device?: string;
}

export class Transports {
  readonly #wanted: TransportOptions["wanted"];
  readonly #program: string;
  readonly #openKernel: typeof makeKernelTransport;
  readonly #vhostUser: VsockTransport;
  #kernel: ReturnType<typeof makeKernelTransport> | null = null;
  readonly #device: string;
  #kind: VsockTransport["kind"] | null = null;
  #reason = "";

  constructor({ wanted, program, openKernel = makeKernelTransport, device = VHOST_VSOCK }: TransportOptions) {
    this.#wanted = wanted;
    this.#program = program;
    this.#openKernel = openKernel;
    this.#device = device;
    this.#vhostUser = makeVhostUserTransport(program);
  }

  /** What new guests get, and why; null where there is none. */
  get found(): { kind: VsockTransport["kind"] | null; reason: string } {
    return { kind: this.#kind, reason: this.#reason };
  }

  /** For new guests. Throws not_ready. */
  get chosen(): VsockTransport {
    if (this.#kind === null) throw new ServiceError("not_ready", { detail: this.#reason });
    return this.#kind === "kernel" ? this.#openedKernel("The kernel's vsock cannot be used") : this.#vhostUser;
  }

  /** Looks what there is for new guests. */
  async choose(): Promise<void> {
    let why = "";
    if (this.#wanted !== "vhost-user" && (this.#wanted === "kernel" || existsSync(this.#device))) {
      try {
        closeSync(openSync(this.#device, "r+"));
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
    this.#kind = version === null ? null : "vhost-user";
    this.#reason =
      version === null
        ? `There is neither ${VHOST_VSOCK} nor ${this.#program} on this host${why}.`
        : `Guests use vhost-device-vsock ${version}${why}.`;
  }

  /** For a guest that was started with this kind. Throws not_ready while it cannot be had. */
  of(kind: VsockTransport["kind"]): VsockTransport {
    if (kind === "vhost-user") return this.#vhostUser;
    return this.#openedKernel("It was started with the kernel's vsock, which cannot be used");
  }

  close(): void {
    this.#kernel?.stop();
  }

  #openedKernel(otherwise: string): VsockTransport {
    try {
      this.#kernel ??= this.#openKernel();
      return this.#kernel;
    } catch (error) {
      throw new ServiceError("not_ready", { detail: `${otherwise}: ${describeError(error)}.`, cause: error });
    }
  }
}
