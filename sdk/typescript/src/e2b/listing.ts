/** Sandboxes as E2B describes them, and pages of them. */
import type { Sandbox as SandboxRecord } from "../generated/schemas.ts";
import { Sandbox as NativeSandbox } from "../sandbox.ts";
import { SandboxError, translating } from "./errors.ts";
import { type ConnectionOpts, callOf, clientOf } from "./request.ts";

/** Description of a sandbox. */
export interface SandboxInfo {
  /** Its id, for `Sandbox.connect`. */
  sandboxId: string;
  /** Template from which the sandbox was created. */
  templateId: string;
  /** Never set. */
  name?: string;
  /** Its labels. */
  metadata: Record<string, string>;
  /** Time of its creation. */
  startedAt: Date;
  /** Time of the sandbox's end; the largest date if it has none. */
  endAt: Date;
  /** Whether the sandbox runs or is paused. */
  state: "running" | "paused";
  /** Number of virtual CPUs. */
  cpuCount: number;
  /** Memory in MiB. */
  memoryMB: number;
}

/** Filters of a list. */
export interface SandboxListOpts extends ConnectionOpts {
  /** Filters by labels, state and template. */
  query?: { metadata?: Record<string, string>; state?: SandboxInfo["state"][]; template?: string };
  /** Number of sandboxes per page; 100 by default. */
  limit?: number;
}

const DEFAULT_PAGE = 100;
/** Reported end of a sandbox without one. */
const NEVER = new Date(8.64e15);
/** States that E2B calls paused. */
export const PAUSED: readonly SandboxRecord["state"][] = ["pausing", "paused", "hibernating", "hibernated"];
/** States of a sandbox that no longer exists for E2B. */
export const ENDED: readonly SandboxRecord["state"][] = ["failed", "destroying", "destroyed"];

/** Pages of sandboxes. */
export class SandboxPaginator {
  readonly #items: AsyncGenerator<SandboxRecord>;
  readonly #query: NonNullable<SandboxListOpts["query"]>;
  readonly #limit: number;
  #hasNext = true;

  /** Pages of the matching sandboxes. */
  constructor({ query = {}, limit = DEFAULT_PAGE, ...opts }: SandboxListOpts = {}) {
    const [first] = Object.entries(query.metadata ?? {});
    const label = first === undefined ? {} : { label: { name: first[0], value: first[1] } };
    this.#items = NativeSandbox.list({ ...clientOf(opts), ...callOf(opts), ...label });
    this.#query = query;
    this.#limit = limit;
  }

  /** Whether there may be another page. */
  get hasNext(): boolean {
    return this.#hasNext;
  }

  /** The next page. */
  nextItems(): Promise<SandboxInfo[]> {
    if (!this.#hasNext) throw new SandboxError("There are no more pages.");
    return translating(async () => {
      const page: SandboxInfo[] = [];
      while (page.length < this.#limit) {
        const next = await this.#items.next();
        if (next.done) {
          this.#hasNext = false;
          break;
        }
        if (!ENDED.includes(next.value.state) && this.#fits(infoOf(next.value))) page.push(infoOf(next.value));
      }
      return page;
    });
  }

  #fits({ metadata, state, templateId }: SandboxInfo): boolean {
    const { metadata: expected = {}, state: states, template } = this.#query;
    const isLabelled = Object.entries(expected).every(([name, value]) => metadata[name] === value);
    return isLabelled && (states === undefined || states.includes(state)) && (template ?? templateId) === templateId;
  }
}

/** A sandbox as E2B describes it. */
export function infoOf(record: SandboxRecord): SandboxInfo {
  return {
    sandboxId: record.sandbox_id,
    templateId: record.template_id,
    metadata: record.labels as Record<string, string>,
    startedAt: new Date(record.created_at),
    endAt: record.expires_at === null ? NEVER : new Date(record.expires_at),
    state: PAUSED.includes(record.state) ? "paused" : "running",
    cpuCount: record.vcpu_count,
    memoryMB: record.memory_mib,
  };
}
