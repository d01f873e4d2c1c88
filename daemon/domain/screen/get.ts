/** Takes a picture of a sandbox's screen. */
import { screenGet } from "../../../shared/api/screen.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import type { Connections } from "./connections.ts";
import type { ScreenDeps } from "./deps.ts";
import { takePicture } from "./picture/take.ts";
import { wholeOf } from "./rfb/frame.ts";

export function makeGet({ sandboxes }: ScreenDeps, connections: Connections): Bound {
  return bind(screenGet, {
    find: (call, params) => sandboxes.find(call, params),
    run: ({ signal }, { width }, target) =>
      connections.use(target, signal, async (client) => {
        await client.current(signal);
        const picture = await takePicture(target, client, { part: wholeOf, width, signal });
        return { outcome: "ok", picture };
      }),
  });
}
