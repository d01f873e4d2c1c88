/** Dedicated connection to a screen, for one viewer or one recording. */
import type { KeyCall } from "../../core/call/operation.ts";
import { connectToScreen, type GuestPort } from "../../host/guest-link/connect.ts";
import type { ScreenDeps, ScreenTarget } from "./deps.ts";
import { screenError } from "./errors.ts";

/** Throws as screenError maps it. */
export async function connect(
  { sandboxes }: Pick<ScreenDeps, "sandboxes">,
  { signal }: Pick<KeyCall, "signal">,
  target: ScreenTarget,
): Promise<GuestPort> {
  return await sandboxes.withLink(target, async (link) => {
    try {
      const port = await connectToScreen(link);
      port.ended.catch(() => {});
      return port;
    } catch (error) {
      throw screenError(error, target.row.agent_id, signal);
    }
  });
}
