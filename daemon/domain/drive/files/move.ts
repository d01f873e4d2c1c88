/** fs_move: renames an entry of any kind; links are moved, not followed. */
import { fsMove } from "../../../../shared/api/drive.ts";
import type { Bound } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Beneath } from "../../../host/files/beneath.ts";
import type { Facts } from "../../../host/files/facts.ts";
import { describePath } from "../entry.ts";
import { type Meaning, meaning } from "../errors.ts";
import { parsePath, pathRule, shownPath, splitPath } from "../path.ts";
import { bindDrive, type Drive } from "../verb.ts";
import { openOrMake } from "./parents.ts";
import { freedBy, turnKey } from "./place-file.ts";

export function move(drive: Drive): Bound {
  return bindDrive(drive, fsMove, {
    rules: (input) => [...pathRule("from", input.from), ...pathRule("to", input.to)],
    run: async (call, input, { room, root, usage }) => {
      const [from, to] = [parsePath(input.from), parsePath(input.to)];
      call.audit.details = { path: shownPath(from), to: shownPath(to) };
      const [source, target] = [splitPath(from), splitPath(to)];
      using sourceDirectory = root.directory(source.parent);
      const moved = sourceDirectory.facts(source.name);
      if (!moved) {
        // An earlier attempt of the same call has moved it, and got no response.
        const wasMoved = call.work.begun?.moved === identityOf(root, target);
        if (wasMoved) return { outcome: "ok", body: await describePath(root, to) };
        throw new ServiceError("path_not_found");
      }
      await call.work.noteFirst({ moved: moved.identity });
      using targetDirectory = (await openOrMake(drive, { room, root }, target.parent)).directory;
      await drive.turns.take(turnKey(targetDirectory, target.name), async () => {
        const since = usage.moment;
        const replaced = targetDirectory.facts(target.name);
        const taken = input.overwrite ? "replace" : "refuse";
        const rename = () => sourceDirectory.rename(source.name, targetDirectory, target.name, taken);
        await meaning(refusals(moved), () => drive.stillness.passing({ room, root }, rename));
        if (replaced && replaced.identity !== moved.identity) usage.change({ freed: freedBy(replaced) }, since);
      });
      await targetDirectory.sync();
      await sourceDirectory.sync();
      return { outcome: "ok", body: await describePath(root, to) };
    },
  });
}

function identityOf(root: Beneath, { parent, name }: ReturnType<typeof splitPath>): string | undefined {
  using directory = root.directory(parent);
  return directory.facts(name)?.identity;
}

function refusals(moved: Facts): Record<string, Meaning> {
  return {
    EINVAL: ["invalid_path", "A directory cannot be moved into itself."],
    // rename(2) of a directory onto something else.
    ...(moved.type === "directory" ? { ENOTDIR: ["already_exists", "The target is not a directory."] } : {}),
  };
}
