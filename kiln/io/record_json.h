// Records as JSON values: what the JSON, MessagePack and CBOR recorders write. For recorder.cpp.
#pragma once

#include <string>

#include "kiln/core/budget.h"
#include "kiln/core/json.h"
#include "kiln/nn/record.h"

namespace kiln::io::detail {

// The newest layout of records that this version writes and reads.
inline constexpr int64_t kRecordVersion = 1;

// With `text`, values are numbers; otherwise the bytes that they have in memory.
Json record_to_json(const nn::RecordItem& item, bool text);
// Throws IoError that begins with `where` ("load_record: 'model.mpk'"); charges the tensors.
nn::RecordItem record_from_json(const Json& json, const std::string& where, Budget& budget);

Json values_to_json(const nn::RecordValues& values);
nn::RecordValues values_from_json(const Json& json, const std::string& where);
// The settings by what files call them. Throws IoError.
nn::PrecisionSettings parse_settings(const std::string& name, const std::string& float_type,
                                     const std::string& int_type, const std::string& where);

}  // namespace kiln::io::detail
