/** sandbox_file_mkdir, sandbox_file_move and sandbox_file_delete. */
import { StreamError } from "../../../../shared/agent-protocol/link.ts";
import { sandboxFileDelete, sandboxFileMkdir, sandboxFileMove } from "../../../../shared/api/sandbox-files.ts";
import type { Bound } from "../../../core/call/operation.ts";
import { makeDirectoryInGuest, moveInGuest, removeInGuest, statInGuest } from "../../../host/guest-link/files.ts";
import { modeOf, shownEntry } from "./entry.ts";
import { parsePath, pathRule } from "./path.ts";
import { bindFiles, type FileDeps } from "./verb.ts";

export function makeMkdir(deps: FileDeps): Bound {
  return bindFiles(deps, sandboxFileMkdir, {
    kind: "make",
    rules: ({ path }) => pathRule("path", path),
    paths: ({ path }) => [parsePath(path)],
    run: async (call, input, { link }) => {
      const path = parsePath(input.path);
      call.audit.details = { path };
      const request = { path, mode: modeOf(input.mode), owner: input.owner ?? null };
      const { entry, created } = await makeDirectoryInGuest(link, request);
      return { outcome: created ? "created" : "existing", body: { ...shownEntry(entry), created } };
    },
  });
}

export function makeMove(deps: FileDeps): Bound {
  return bindFiles(deps, sandboxFileMove, {
    rules: ({ from, to }) => [...pathRule("from", from), ...pathRule("to", to)],
    paths: ({ from, to }) => [parsePath(from), parsePath(to)],
    run: async (call, input, { link }) => {
      const [from, to] = [parsePath(input.from), parsePath(input.to)];
      call.audit.details = { path: from, to };
      const { begun } = call.work;
      if (begun) {
        // An earlier attempt of the same call may have moved the file without a response.
        const there = await statInGuest(link, { path: to, follow: false }).catch(nullIfRefused);
        if (there && there.identity === begun.moved) return { outcome: "ok", body: shownEntry(there) };
      }
      const { identity } = await statInGuest(link, { path: from, follow: false });
      await call.work.noteFirst({ moved: identity });
      const entry = await moveInGuest(link, { from, to, overwrite: input.overwrite ?? false });
      return { outcome: "ok", body: shownEntry(entry) };
    },
  });
}

export function makeDelete(deps: FileDeps): Bound {
  return bindFiles(deps, sandboxFileDelete, {
    rules: ({ path }) => pathRule("path", path),
    paths: ({ path }) => [parsePath(path)],
    run: async (call, input, { link }) => {
      const path = parsePath(input.path);
      call.audit.details = { path };
      await removeInGuest(link, { path, recursive: input.recursive ?? false });
      return { outcome: "ok", body: { path, state: "deleted" as const } };
    },
  });
}

function nullIfRefused(error: unknown): null {
  if (error instanceof StreamError) return null;
  throw error;
}
