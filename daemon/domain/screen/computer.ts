/** Performs one action at a sandbox's screen, and takes a picture of the result. */
import type { InputOf } from "../../../shared/api/contract.ts";
import { computer } from "../../../shared/api/screen.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Connections } from "./connections.ts";
import type { ScreenDeps } from "./deps.ts";
import { perform } from "./perform.ts";
import { scaledSize } from "./picture/scale.ts";
import { isRefusal, takePicture } from "./picture/take.ts";
import { type Point, Scale } from "./places.ts";
import { wholeOf } from "./rfb/frame.ts";
import { rules } from "./rules.ts";

type Input = InputOf<typeof computer>;

export function makeComputer({ sandboxes }: ScreenDeps, connections: Connections): Bound {
  return bind(computer, {
    find: (call, params) => sandboxes.find(call, params),
    rules: (input, _target, bad) => rules(input, bad),
    run: (call, input, target) => {
      call.audit.details = { action: input.action };
      const { signal } = call;
      return connections.useAlone(target, signal, async (client) => {
        signal.throwIfAborted();
        await client.current(signal);
        const scale = new Scale(client.frame, input.width);
        requireOnScreen(input, scale);
        // The retry of a failed call may find the action done: the picture shows it, and nothing is clicked or typed twice.
        if (!call.work.begun) {
          await call.work.noteFirst({ action: input.action });
          await perform(client, input, scale, signal);
        }
        const shows = showsPicture(input);
        // Answers only after the screen's server has processed the action.
        await (shows ? client.still(signal) : client.current(signal));
        const { region } = input;
        const part = region && input.action === "zoom" ? () => scale.region(region) : wholeOf;
        const taken = shows ? takePicture(target, client, { part, width: input.width, signal }) : null;
        // A missing picture does not make a completed action a failure.
        const picture = await taken?.catch((error: unknown) => {
          if (isPicture(input) || !isRefusal(error)) throw error;
          return null;
        });
        const { width, height } = scaledSize(client.frame, input.width ?? client.frame.width);
        const { x, y } = client.pointer;
        return {
          outcome: "ok",
          body: {
            action: input.action,
            width,
            height,
            cursor: new Scale(client.frame, input.width).shown([x, y]),
            screenshot_b64: picture?.toString("base64") ?? null,
          },
        };
      });
    },
  });
}

function showsPicture(input: Input): boolean {
  return isPicture(input) || (input.screenshot ?? input.action !== "cursor_position");
}

/** Whether the action only takes a picture. */
function isPicture({ action }: Input): boolean {
  return action === "screenshot" || action === "zoom";
}

/** Throws validation_failed. */
function requireOnScreen({ coordinate, start_coordinate, region }: Input, { width, height }: Scale): void {
  const places: [string, Point | undefined, number][] = [
    ["coordinate", coordinate && [coordinate[0] ?? 0, coordinate[1] ?? 0], 0],
    ["start_coordinate", start_coordinate && [start_coordinate[0] ?? 0, start_coordinate[1] ?? 0], 0],
    // The end of a region is exclusive.
    ["region", region && [region[2] ?? 0, region[3] ?? 0], 1],
  ];
  for (const [field, place, beyond] of places) {
    if (!place || (place[0] < width + beyond && place[1] < height + beyond)) continue;
    const message = `${field} is not on the screen, which is ${width}x${height} in the requested size.`;
    throw new ServiceError("validation_failed", {
      detail: message,
      errors: [{ field, code: "out_of_range", message }],
    });
  }
}
