/** file_put: a file of any size from the body of a request, streamed to its path. */
import { filePut } from "../../../../shared/api/drive.ts";
import type { Bound, TransferOf } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { FILE_MODE, factsAt, parseMode } from "../entry.ts";
import { etagOf, namesEtag } from "../etag.ts";
import { ownerRule, parseOwner } from "../owner.ts";
import { type DrivePath, parsePath, pathRule } from "../path.ts";
import { bindDrive, type Drive, type OpenDrive } from "../verb.ts";
import { placeFile } from "./place-file.ts";
import { receive } from "./receive.ts";

export function putFile(drive: Drive): Bound {
  return bindDrive(drive, filePut, {
    rules: (input) => [...pathRule("path", input.path), ...ownerRule(input.owner)],
    run: async (call, input, place, transfer) => {
      const path = parsePath(input.path);
      requireEtag(place, path, transfer);
      const body = await placeFile(drive, place, {
        path,
        mode: parseMode(input.mode, FILE_MODE),
        owner: parseOwner(input.owner),
        overwrite: input.overwrite ?? true,
        fill: (write, over) =>
          receive(transfer.body, { orgId: call.caller.org_id, signal: AbortSignal.any([call.signal, over]) }, write),
        check: async () => requireEtag(place, path, transfer),
      });
      call.audit.details = { path: body.path, size_bytes: body.size_bytes, sha256: body.sha256 };
      return { outcome: body.created ? "created" : "replaced", body };
    },
  });
}

/** Checks If-Match and If-None-Match: before the body is received, and again before the file is put in place. */
function requireEtag(
  { root }: OpenDrive,
  path: DrivePath,
  { if_match, if_none_match }: TransferOf<typeof filePut>,
): void {
  if (if_match === null && if_none_match === null) return;
  const facts = factsAt(root, path);
  const etag = facts && etagOf(facts);
  const holds =
    (if_match === null || namesEtag(if_match, etag)) && (if_none_match === null || !namesEtag(if_none_match, etag));
  if (!holds) {
    throw new ServiceError("precondition_failed", { details: { etag } });
  }
}
