/** Takes a picture of a sandbox's screen. */
import { screenGet } from "../../../shared/api/screen.ts";
import { type Bound, bind } from "../../core/operation.ts";
import type { Connections } from "./connections.ts";
import type { ScreenDeps } from "./deps.ts";
import { takePicture } from "./picture/take.ts";
import { wholeOf } from "./rfb/frame.ts";

export function makeGet({ sandboxes }: ScreenDeps, connections: Connections): Bound {
  return bind(screenGet, {
    find: (call, params) => sandboxes.find(call, params),
    run: (call, { width }, target) =>
      connections.use(target, async (client) => {
        await client.current(call.signal);
        const picture = await takePicture(target, () => client.frame, wholeOf, width);
        return { outcome: "ok", picture };
      }),
  });
}
