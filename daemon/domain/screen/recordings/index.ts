/** Operations on recordings. */
import {
  FILM_TYPE,
  RECORDING_TYPE,
  recordingData,
  recordingDelete,
  recordingFilm,
  recordingGet,
  recordingList,
  recordingStart,
  recordingStop,
} from "../../../../shared/api/recordings.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { fileStream } from "../../../host/files/file-stream.ts";
import type { ScreenDeps } from "../deps.ts";
import type { Films } from "./film.ts";
import type { Recordings } from "./recordings.ts";

export function recordingOperations({ sandboxes }: ScreenDeps, recordings: Recordings, films: Films): Bound[] {
  return [
    bind(recordingStart, {
      find: (call, params) => sandboxes.find(call, params),
      run: async (call, { max_seconds }, target) => {
        const body = await recordings.start(call, target, max_seconds);
        call.audit.details = { recording_id: body.recording_id };
        return { outcome: "created", body };
      },
    }),
    bind(recordingList, {
      find: (call, params) => sandboxes.findEver(call, params),
      run: async (_call, _input, target) => ({ outcome: "ok", body: { items: await recordings.list(target) } }),
    }),
    bind(recordingGet, {
      find: (call, params) => sandboxes.findEver(call, params),
      run: async (call, { recording_id }, target) => {
        call.audit.details = { recording_id };
        return { outcome: "ok", body: await recordings.get(target, recording_id) };
      },
    }),
    bind(recordingStop, {
      find: (call, params) => sandboxes.findEver(call, params),
      run: async (call, { recording_id }, target) => {
        call.audit.details = { recording_id };
        return { outcome: "ok", body: await recordings.stop(target, recording_id) };
      },
    }),
    bind(recordingDelete, {
      find: (call, params) => sandboxes.findEver(call, params),
      run: async (call, { recording_id }, target) => {
        call.audit.details = { recording_id };
        await recordings.remove(target, recording_id);
        return { outcome: "ok", body: { recording_id, state: "deleted" as const } };
      },
    }),
    bind(recordingData, {
      find: (call, params) => sandboxes.findEver(call, params),
      run: async (call, { recording_id }, target) => {
        call.audit.details = { recording_id };
        // The data so far, if it is still in progress.
        const { record, file } = await recordings.open(target, recording_id);
        const bytes = fileStream(file, 0, record.size_bytes, call.signal);
        return { outcome: "ok", stream: { type: RECORDING_TYPE, bytes } };
      },
    }),
    bind(recordingFilm, {
      find: (call, params) => sandboxes.findEver(call, params),
      run: async (call, { recording_id }, target) => {
        call.audit.details = { recording_id };
        const { record, file } = await recordings.open(target, recording_id);
        if (record.state === "recording") {
          await file[Symbol.asyncDispose]();
          throw new ServiceError("invalid_state", {
            detail: `Recording ${recording_id} is still running.`,
            details: { state: record.state, allowed_states: ["ended"] },
            hint: "Stop it first.",
          });
        }
        const bytes = await films.make(target.row.org_id, record, file, call.signal);
        return { outcome: "ok", stream: { type: FILM_TYPE, bytes } };
      },
    }),
  ];
}
