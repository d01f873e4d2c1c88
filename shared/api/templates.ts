/** Interface of templates, from which sandboxes start. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, oneOf, operation, record, timestamp } from "./contract.ts";

export const TEMPLATE_PATTERN = "^[a-z0-9][a-z0-9._-]{0,63}$";

/** The image from which a template was built. */
export const templateSource = record("TemplateSource", {
  ref: Type.String(),
  /** Null if the image was named for one platform only. */
  index_digest: Type.Union([Type.String(), Type.Null()]),
  manifest_digest: Type.String(),
  config_digest: Type.String(),
});
export type TemplateSource = Static<typeof templateSource>;

export const template = fields({
  template_id: Type.String(),
  digest: Type.String(),
  description: Type.String(),
  min_memory_mib: Type.Integer(),
  default_memory_mib: Type.Integer(),
  tools: Type.Array(Type.String()),
  created_at: timestamp,
  /** Absent for templates that are built from packages. */
  source: Type.Optional(templateSource),
});
export type TemplateRecord = Static<typeof template>;

/** Its owner: the host, for every organization on it, or only the caller's organization. */
export const VISIBILITIES = ["host", "org"] as const;

/** As its users see it. */
export const shownTemplate = record("Template", { ...template.properties, visibility: oneOf(VISIBILITIES) });

export const templateList = operation({
  name: "template_list",
  extension: "templates",
  method: "GET",
  path: "/v1/templates",
  summary: "List templates",
  access: "sandboxes:read",
  params: NONE,
  query: NONE,
  body: null,
  output: fields({ items: Type.Array(shownTemplate), next_cursor: Type.Null() }),
  outcomes: { ok: 200 },
  errors: [],
  audit: "template.listed",
});

export const templateGet = operation({
  name: "template_get",
  extension: "templates",
  method: "GET",
  path: "/v1/templates/{template_id}",
  summary: "Get a template",
  access: "sandboxes:read",
  params: fields({ template_id: Type.String({ maxLength: 128 }) }),
  query: NONE,
  body: null,
  output: shownTemplate,
  outcomes: { ok: 200 },
  errors: ["template_not_found"],
  audit: "template.read",
});
