/** The calls that list templates and get one. */
import { templateGet, templateList } from "../../../shared/api/templates.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Template, Templates } from "./registry.ts";

export function makeTemplateList(templates: Templates): Bound[] {
  return [
    bind(templateList, {
      run: ({ caller }) => ({
        outcome: "ok",
        body: { items: templates.list(caller.org_id).map(shown), next_cursor: null },
      }),
    }),
    bind(templateGet, {
      find: ({ caller }, params) => {
        const templateId = String(params.template_id);
        const template = templates.get(templateId, caller.org_id);
        if (!template) {
          throw new ServiceError("template_not_found", { inPath: true, detail: `There is no template ${templateId}.` });
        }
        return template;
      },
      run: (_call, _input, template) => ({ outcome: "ok", body: shown(template) }),
    }),
  ];
}

/** As its users see it. */
export const shown = ({ record, owner }: Pick<Template, "record" | "owner">) => ({
  ...record,
  visibility: owner === null ? ("host" as const) : ("org" as const),
});
