/**
 * Owns which vsock transport a guest has: new ones the kernel's own where it is and free, else the vhost-user device; one that
 * is taken over the one that it was started with.
 */
import { existsSync } from "node:fs";
import { ServiceError } from "../../../core/service-error.ts";
import { programVersion } from "../../probe.ts";
import { makeKernelTransport, VHOST_VSOCK } from "./kernel.ts";
import type { VsockTransport } from "./transport.ts";
import { makeVhostUserTransport } from "./vhost-user.ts";

export interface TransportOptions {
  wanted: "auto" | "kernel" | "vhost-user";
  /** The vhost-device-vsock to run. */
  program: string;
  /** Throws while another daemon has it. */
  openKernel?: typeof makeKernelTransport;
}

export class Transports {
  readonly #wanted: TransportOptions["wanted"];
  readonly #program: string;
  readonly #openKernel: typeof makeKernelTransport;
  readonly #vhostUser: VsockTransport;
  #kernel: ReturnType<typeof makeKernelTransport> | null = null;
  #chosen: VsockTransport | null = null;
  #reason = "";

  constructor({ wanted, program, openKernel = makeKernelTransport }: TransportOptions) {
    this.#wanted = wanted;
    this.#program = program;
    this.#openKernel = openKernel;
    this.#vhostUser = makeVhostUserTransport(program);
  }

  /** What new guests get, and why; null where there is none. */
  get found(): { kind: VsockTransport["kind"] | null; reason: string } {
    return { kind: this.#chosen?.kind ?? null, reason: this.#reason };
  }

  /** For new guests. Throws not_ready. */
  get chosen(): VsockTransport {
    if (!this.#chosen) throw new ServiceError("not_ready", { detail: this.#reason });
    return this.#chosen;
  }

  /** Looks what there is for new guests. */
  async choose(): Promise<void> {
    let why = "";
    if (this.#wanted !== "vhost-user" && (this.#wanted === "kernel" || existsSync(VHOST_VSOCK))) {
      try {
        this.#chosen = this.#openedKernel();
        this.#reason = "Guests use the kernel's vhost-vsock.";
        return;
      } catch (error) {
        why = ` (the kernel's could not be used: ${error instanceof Error ? error.message : String(error)})`;
        this.#reason = `vhost-vsock cannot be used${why}.`;
        if (this.#wanted === "kernel") return;
      }
    }
    const version = await programVersion(this.#program);
    this.#chosen = version === null ? null : this.#vhostUser;
    this.#reason =
      version === null
        ? `There is neither ${VHOST_VSOCK} nor ${this.#program} on this host${why}.`
        : `Guests use vhost-device-vsock ${version}${why}.`;
  }

  /** For a guest that was started with this kind. Throws not_ready while it cannot be had. */
  of(kind: VsockTransport["kind"]): VsockTransport {
    if (kind === "vhost-user") return this.#vhostUser;
    try {
      return this.#openedKernel();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const detail = `It was started with the kernel's vsock, which cannot be used: ${why}.`;
      throw new ServiceError("not_ready", { detail, cause: error });
    }
  }

  close(): void {
    this.#kernel?.stop();
  }

  #openedKernel(): VsockTransport {
    this.#kernel ??= this.#openKernel();
    return this.#kernel;
  }
}
