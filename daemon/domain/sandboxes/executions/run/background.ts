/** Saves the output of a background execution, and stores the result of saving with the execution in the guest. */
import { noteInGuest } from "../../../../host/guest-link/exec.ts";
import { followFrom, outputOf, type Reach } from "./output.ts";
import { Backstop } from "./patience.ts";
import { noteOf, timeLimitOf } from "./record.ts";
import { type SaveStreams, Saving } from "./saving.ts";

/** Saves all output from the first piece to the last; after a restart again from the first, as long as the guest retains it. */
export async function saveOutput(reach: Reach, execId: string, path: string, save: SaveStreams): Promise<void> {
  const saving = new Saving(path, save);
  const saved = await saveAll(reach, execId, saving).catch((error: unknown) => {
    saving.abandon();
    return saving.failed(error);
  });
  await noteInGuest(await reach(true), execId, noteOf(saved));
}

async function saveAll(reach: Reach, execId: string, saving: Saving) {
  const following = await followFrom(reach, execId, { after: 0, follow: true });
  const backstop = new Backstop(timeLimitOf(following.execution) ?? Number.POSITIVE_INFINITY);
  for await (const pieces of outputOf(reach, following, 0, { backstop })) await saving.take(pieces);
  return await saving.finish();
}
