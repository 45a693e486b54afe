/** One parameter of a DAG, as its schema describes it. */
import { useId } from "react";

import type { Param } from "../api";

interface Props {
  name: string;
  param: Param;
  value: unknown;
  isFixed: boolean;
  onChange: (value: unknown) => void;
}

export function ParamField({ name, param, value, isFixed, onChange }: Props) {
  const id = useId();
  const types = [param.schema.type ?? "string"].flat();
  const label = param.schema.title ?? name.replaceAll("_", " ");
  const note = param.schema.description ?? param.description;
  const common = { id, name, "aria-describedby": note ? `${id}-note` : undefined };
  if (types.includes("boolean")) {
    return (
      <div className="param check">
        <input {...common} type="checkbox" checked={value === true} onChange={(event) => onChange(event.target.checked)} />
        <label htmlFor={id}>{label}</label>
        {note && <p id={`${id}-note`}>{note}</p>}
      </div>
    );
  }
  const isList = types.includes("array");
  const isNumber = types.includes("integer") || types.includes("number");
  const text = isList ? (Array.isArray(value) ? value.join("\n") : "") : String(value ?? "");
  const read = (given: string): unknown => {
    if (given === "" && types.includes("null")) return null;
    if (isList) return given.split("\n").filter(Boolean);
    return isNumber ? Number(given) : given;
  };
  return (
    <div className="param">
      <label htmlFor={id}>{label}</label>
      {isList ? (
        <textarea {...common} className="field" rows={2} value={text} onChange={(event) => onChange(read(event.target.value))} />
      ) : (
        <input
          {...common}
          className="field"
          type={isNumber ? "number" : "text"}
          readOnly={isFixed}
          value={text}
          onChange={(event) => onChange(read(event.target.value))}
        />
      )}
      {note && <p id={`${id}-note`}>{note}</p>}
    </div>
  );
}
