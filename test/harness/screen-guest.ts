/**
 * Owns screens whose guests are a link in memory, joined to a handler of the agent or to a server in memory, and calls of the
 * operations on them. Nothing is a virtual machine here.
 */

import type { Asker } from "../../daemon/core/fair-places.ts";
import { type Caller, type KeyCall, NO_TRANSFER, trialCall } from "../../daemon/core/operation.ts";
import type { SandboxAccess, ScreenDeps, ScreenTarget } from "../../daemon/domain/screen/deps.ts";
import { makeScreens, type Screens } from "../../daemon/domain/screen/index.ts";
import type { GuestLink } from "../../daemon/host/guest-link/handshake.ts";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { Channel } from "../../shared/agent-protocol/messages.ts";
import type { OrgId } from "../../shared/ids.ts";
import { joined } from "../protocol/wire.ts";
import type { RfbServer } from "./rfb-server.ts";

type Handler = (stream: Stream) => Promise<void> | void;

/** The guest's half of a connection to a server in memory. */
export function serve(server: RfbServer): Handler {
  return async (stream) => {
    const { output, write, close } = server.wire;
    stream.finished.then(close, close);
    stream.say({ type: "connected" });
    const hear = async () => {
      for await (const bytes of stream.read(Channel.stdin)) await write(bytes);
    };
    hear().catch(() => {});
    for await (const bytes of output) if (!(await stream.write(Channel.stdout, bytes))) return;
    stream.endChannel(Channel.stdout);
  };
}

export class ScreenGuest {
  readonly screens: Screens;
  /** How often somebody connected. */
  connected = 0;
  /** The sandbox has this state from now on. */
  readonly become: (state: string) => void;

  constructor(handler: Handler, options: Omit<ScreenDeps, "sandboxes"> = {}) {
    const { host } = joined({
      guest: {
        onOpen: (stream) => {
          this.connected++;
          void handler(stream);
        },
      },
    });
    const stopped = Promise.withResolvers<string>();
    this.become = stopped.resolve;
    const sandboxes: SandboxAccess = {
      find: () => TARGET,
      withLink: (_, work) => work(host.link as unknown as GuestLink),
      stopped: () => stopped.promise,
    };
    this.screens = makeScreens({ sandboxes, ...options });
  }

  call(): KeyCall {
    return trialCall(CALLER);
  }

  /** The picture, as a PNG; of another sandbox where one is named. */
  async picture(width?: number, of: Partial<Asker> = {}, call = this.call()): Promise<Uint8Array> {
    const target = { ...TARGET, row: { ...TARGET.row, ...of } } as ScreenTarget;
    const { picture } = await this.#run("screen_get", width === undefined ? {} : { width }, call, target);
    return picture ?? new Uint8Array(0);
  }

  /** What `computer` answers. */
  async use(input: object, call = this.call()): Promise<Used> {
    return (await this.#run("computer", input, call)).body as Used;
  }

  async #run(name: string, input: object, call: KeyCall, target = TARGET) {
    const bound = this.screens.operations.find(({ operation }) => operation.name === name);
    if (!bound) throw new Error(`no operation ${name}`);
    const broken = bound.rules(input, target, []);
    if (broken.length > 0) throw new Error(JSON.stringify(broken));
    return await bound.run(call, input, target, NO_TRANSFER);
  }
}

export interface Used {
  action: string;
  width: number;
  height: number;
  cursor: [number, number];
  screenshot_b64: string | null;
}

const CALLER = {
  org_id: "org_1",
  key_id: "kid_1",
  scopes: ["exec"],
  room_ids: null,
  agent_id: null,
} as unknown as Caller;
const TARGET = {
  room: { room_id: "r", state: "active" },
  row: { sandbox_id: "sbx_1", agent_id: "worker-1", org_id: "org_1" as OrgId, state: "running" },
  isLookedAt: false,
} as unknown as ScreenTarget;
