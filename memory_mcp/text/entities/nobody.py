"""Words that stand before さん, 様 or 先生 and name nobody in particular: a calling, an animal, a field of work."""

import re

from memory_mcp.characters import KANJI
from memory_mcp.text.entities.folding import fold
from memory_mcp.text.entities.scripts import LIKE_A_PART

TITLES = ("先生", "先輩", "部長", "課長", "係長", "主任", "社長", "店長", "教授", "博士", "選手", "監督", "コーチ")
# Said of anybody: relatives (a rule of their own finds the writer's), callings, what is revered, what one says in greeting.
_NOBODY = frozenset(
    "皆 皆々 みな みんな 客 医者 店員 隣 向かい 大家 奥 若奥 旦那 若旦那 子 子供 子ども こども 神 女神 仏 王 王子 王女 女王 姫 殿 若 星 月 日 天使 悪魔 貴 俺 僕 私 彼 彼女 貴方 貴女 自分 己 我 今 "
    "母 父 姉 兄 妹 弟 祖母 祖父 叔母 叔父 伯母 伯父 義母 義父 義姉 義兄 義妹 義弟 婆 爺 嫁 花嫁 婿 花婿 娘 息子 孫 妻 夫 新郎 新婦 妊婦 主婦 親 親御 両親 家族 遺族 坊 坊っ 坊主 嬢 小僧 赤 赤子 "
    "学生 生徒 患者 大将 女将 若女将 主人 友人 恋人 美人 老人 大人 仲人 素人 玄人 商人 隣人 病人 犯人 本人 新人 職人 芸人 役人 管理人 外国人 日本人 相談人 大工 左官 板前 棟梁 幹事 番頭 "
    "担任 主治医 受付 審判 先方 相手 弟子 講師 同窓 同僚 上司 部下 友達 親友 先輩 後輩 相撲 得意 取引先 常連 警察 税務署 消防 配達 宅配 郵便 俳優 女優 声優 監督 警備 運転 "
    "何 誰 何方 某 何某 各 他 同 両 諸 一人 二人 三人 全員 巡り 稲荷 地蔵 釈迦 観音 閻魔 世間 天道 何とか 誰か 何か 手伝い 酔っ払い 知り合い 引っ越し 司会 社長 会長 御社 弊社 他社 当社 "
    "牛 豚 馬 鳥 魚 虫 犬 猫 亀 猿 狐 狸 羊 鹿 鬼 蟻 蜂 兎 象 熊 蛙 鼠 鶏 子犬 子猫 双子 三つ子 仔犬 仔猫 黒猫 白猫 野良猫 "
    "ウシ ブタ ウマ トリ サル キツネ タヌキ ヒツジ シカ カメ アリ ハチ カエル ネズミ ゾウ キリン パンダ ライオン ペンギン イルカ ワニ カバ ゴリラ リス ハムスター ネコ イヌ ワン ワンワン ニャン ニワトリ ヒヨコ クマ ウサギ "
    "うし ぶた うま とり さる きつね たぬき ひつじ しか かめ あり はち かえる ねずみ ぞう きりん ぱんだ らいおん ねこ いぬ わん わんわん にゃん にゃんこ わんこ ひよこ くま うさぎ おに ことり "
    "サンタ マスター ドクター ママ パパ ファン ナース スタッフ オーナー コック シェフ モデル メーカー ライター デザイナー エンジニア ユーザー ヘルパー ベビーシッター カメラマン セールスマン アイドル ドライバー アルバイト "
    "バイト パート リーダー クライアント ゲスト スポンサー メンバー ボランティア インストラクター トレーナー サポーター フォロワー リスナー パイロット プログラマー ガイド モブ イケメン オジ オバ ジジ ババ "
    "たく みなみな くん さん ちゃん さま なん なんとか だれか どなたか だれ どなた こちら そちら あちら どちら ぼく おれ わたし あなた おっ ぼっ おか おと おば おじ ばあ じい ばっ じっ とう かあ ねえ にい よめ むすめ むすこ まご "
    "ごめん ごちそう いらっしゃい あいこ いもうと おとうと いとこ あか ちび でぶ のっぽ ぶりっこ いいこ よいこ おりこう もっと きっと やっと ずっと いつも まだ まさか "
    "ai ol ca mc pt ad dj npc vtuber youtuber sns pm pc bot mvp nba mlb nhl pta jr".split()
)
# Surnames and given names that look like a calling: 屋, 手, 師 and 士 end those.
_NAMES = frozenset("土屋 守屋 古屋 関屋 新屋 粟屋 井手 薬師 土師 健士 剛士 篤士 敦士 毅士 羽生 氏家 福家 田所 度会".split()) | LIKE_A_PART
_CALLING = re.compile(
    "(?:屋|[一二三四五六七八九十数何]人|員|手|師|係|者|先|職人"
    "|(?:護|理|計|防|育|書|行|縦|養|生|築|備|法|力|騎|戦|武|紳|博|修|棋|剣)士|(?:画|作|築|門|説|真|楽|論|語|業|治|農|術|資|産|歌|劇)家"
    "|[学校習入業修験年塾院寮級待]生|[校園院会市町村船駅隊班局所室支店部課係組団議委員]長|[国名能般会]人|司|婦人|娘)$"
)
# A company or a place is polite company too, and no person: 横浜銀行さん.
_NOT_A_PERSON = re.compile(
    "..(?:銀行|工業|商事|産業|建設|電機|製薬|大学|高校|病院|医院|組合|会社|本社|支社|商店|工務店|書店|神社|役所|区役所|出版|新聞|業部|務部|理部|売部|事部)$"
)
# What one teaches, plays, leads or researches is no name: 数学の先生 is 数学先生 in short, サッカー選手 somebody.
_FIELDS = frozenset(
    "数学 国語 英語 理科 社会 音楽 美術 体育 料理 保健 保育 教頭 校長 園長 担任 専任 副 前 新 元 現 名誉 准 助 客員 特任 指導 担当 大学 研究 営業 総務 人事 経理 開発 技術 編集 広報 企画 製造 販売 法務 財務 第一 第二 "
    "女性 男性 女 男 名 総 鬼 大 若 女将 二代目 取締役 代表取締役 代表 日本代表 学年 現場 教務 看護 子会社 親会社 雇われ 臨時 敏腕 物知り 直属 塾 部活 高校 中学 小学校 同 全 各 "
    "野球 プロ野球 高校野球 水泳 陸上 卓球 柔道 剣道 体操 相撲 競馬 囲碁 将棋 一流 有力 注目 主力 若手 新人 外国人 相手 出場 投手 映画 舞台 撮影 作画 音響 助演 "
    "サッカー テニス バスケ バスケット バスケットボール バレー バレーボール ゴルフ スキー スケート ラグビー ボクシング プロ マラソン チーム リーダー グループ エリア ユース クラブ ダンス ピアノ ギター ヨガ スイミング "
    "ジム パソコン アルバイト バイト パート ゼミ サークル アメフト オリンピック パラリンピック プロレス レスリング フィギュア フィギュアスケート スノーボード トップ スター ベテラン ルーキー ライバル ゲーム".split()
)
_AFTER_FIELDS = ("様", "氏", *TITLES)
# 営業部長, 理学博士: a part of a firm, or of what one studies.
_PART_OF_A_FIRM = re.compile(f"^[{KANJI}]+(?:学|業|務|画|術|校|社|部|課|室|局|院|所|店|支|代表|任|付|席|会)$")
_NO_NAME_BEFORE = {
    "様": re.compile("(?:[仕模同多異有一左今別外図紋文両]|方々)$"),  # 模様, 仕様, 同様, also in 雨模様 and 新仕様
    "氏": re.compile("^(?:元?彼|[両某摂華源平諸同各何姓本当])$"),  # 彼氏, 某氏, 源氏; 摂氏 and 華氏 measure heat
    "君": re.compile("諸$|^[暴主夫細名幼若姫大父母兄貴明聖]$"),  # 諸君, 暴君, 主君, 夫君
    **dict.fromkeys(TITLES, _PART_OF_A_FIRM),
}


def is_nobody(name: str, honorific: str) -> bool:
    """Whether what stands before an honorific says what somebody is, and not who."""
    if name in _NAMES:
        return False
    if fold(name) in _NOBODY or _CALLING.search(name) or _NOT_A_PERSON.search(name):
        return True
    if name in _FIELDS and honorific in _AFTER_FIELDS:
        return True
    no_name = _NO_NAME_BEFORE.get(honorific)
    return no_name is not None and no_name.search(name) is not None
