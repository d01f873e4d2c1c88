/** sandbox_file_get and sandbox_file_put: a file of a sandbox as the body of a response or of a request. */
import { StreamError } from "../../../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../../../shared/agent-protocol/messages.ts";
import { sandboxFileGet, sandboxFilePut } from "../../../../shared/api/sandbox-files.ts";
import type { Bound, TransferOf } from "../../../core/call/operation.ts";
import { at } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { Hash } from "../../../host/files/hash.ts";
import { openInGuest, statInGuest, writeInGuest } from "../../../host/guest-link/files.ts";
import type { GuestLink } from "../../../host/guest-link/handshake.ts";
import { namesEtag } from "../../drive/etag.ts";
import { rangeOf } from "../../drive/files/range.ts";
import { receive } from "../../drive/files/receive.ts";
import { etagOf, modeOf, shownMode } from "./entry.ts";
import { parseRawPath, rawPathRule } from "./path.ts";
import { bindFiles, type FileDeps } from "./verb.ts";

export function makeGetFile(deps: FileDeps): Bound {
  return bindFiles(deps, sandboxFileGet, {
    rules: ({ path }) => rawPathRule(path),
    paths: ({ path }) => [parseRawPath(path)],
    run: async (call, input, { link, until }, { range, if_none_match }) => {
      const path = parseRawPath(input.path);
      call.audit.details = { path };
      const file = await openInGuest(link, path);
      try {
        const { entry } = file;
        const etag = etagOf(entry);
        if (if_none_match !== null && namesEtag(if_none_match, etag)) {
          file.close();
          return { outcome: "ok", unchanged: { etag } };
        }
        const { size_bytes } = entry;
        const part = rangeOf(range, size_bytes);
        call.audit.details = { path, size_bytes, offset: part.offset, length: part.length };
        const stream = file.take(part.offset, part.length);
        call.signal.addEventListener("abort", file.close, { once: true });
        until(file.over);
        return { outcome: "ok", bytes: { ...part, stream, size_bytes, etag, modified_at: at(entry.modified_at_ms) } };
      } catch (error) {
        file.close();
        throw error;
      }
    },
  });
}

export function makePutFile(deps: FileDeps): Bound {
  return bindFiles(deps, sandboxFilePut, {
    kind: "make",
    rules: ({ path }) => rawPathRule(path),
    paths: ({ path }) => [parseRawPath(path)],
    run: async (call, input, { link }, transfer) => {
      const path = parseRawPath(input.path);
      call.audit.details = { path };
      const expect = await expectedOf(link, path, transfer);
      const request = {
        path,
        mode: modeOf(input.mode),
        owner: input.owner ?? null,
        overwrite: input.overwrite ?? true,
        ...(expect === undefined ? {} : { expect }),
      };
      let size_bytes = 0;
      using hash = new Hash();
      const { entry, created } = await writeInGuest(link, request, (write, over) =>
        receive(
          transfer.body,
          { orgId: call.caller.org_id, signal: AbortSignal.any([call.signal, over]) },
          async (bytes) => {
            size_bytes += bytes.byteLength;
            await Promise.all([hash.add(bytes), write(bytes)]);
          },
        ),
      );
      const sha256 = await hash.digest();
      call.audit.details = { path, size_bytes, sha256 };
      const { uid, gid, modified_at_ms } = entry;
      const body = {
        path,
        size_bytes,
        sha256,
        mode: shownMode(entry),
        uid,
        gid,
        modified_at: at(modified_at_ms),
        created,
      };
      return { outcome: created ? "created" : "replaced", body };
    },
  });
}

/**
 * The version that If-Match and If-None-Match allow to replace, null for none; undefined without these headers. Throws precondition_failed.
 */
async function expectedOf(
  link: GuestLink,
  path: string,
  { if_match, if_none_match }: TransferOf<typeof sandboxFilePut>,
): Promise<string | null | undefined> {
  if (if_match === null && if_none_match === null) return undefined;
  const there = await statInGuest(link, { path, follow: true }).catch((error: unknown) => {
    const isMissing = error instanceof StreamError && error.code === StreamErrorCode.file_failed;
    if (isMissing && ["ENOENT", "ENOTDIR"].includes(error.message)) return null;
    throw error;
  });
  const etag = there && etagOf(there);
  const holds =
    (if_match === null || namesEtag(if_match, etag)) && (if_none_match === null || !namesEtag(if_none_match, etag));
  if (!holds) throw new ServiceError("precondition_failed", { details: { etag } });
  return there?.version ?? null;
}
